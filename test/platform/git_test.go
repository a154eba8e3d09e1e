// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"testing"

	gogit "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	. "github.com/onsi/gomega"
)

func TestACommitHasExactlyTheGivenFiles(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	dir := t.TempDir()
	for _, files := range []Files{
		{"a.yaml": []byte("1"), "sub/b.yaml": []byte("2")},
		{"a.yaml": []byte("3")},
	} {
		hash, err := putGit(dir, files)
		g.Expect(err).NotTo(HaveOccurred())
		repository, err := gogit.PlainOpen(dir)
		g.Expect(err).NotTo(HaveOccurred())
		head, err := repository.Reference(plumbing.NewBranchReferenceName(GitBranch), true)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(head.Hash().String()).To(Equal(hash))
		commit, err := repository.CommitObject(head.Hash())
		g.Expect(err).NotTo(HaveOccurred())
		tree, err := commit.Tree()
		g.Expect(err).NotTo(HaveOccurred())
		for path, content := range files {
			file, err := tree.File(path)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(file.Contents()).To(Equal(string(content)))
		}
		_, err = tree.File("sub/b.yaml")
		g.Expect(err == nil).To(Equal(len(files) == 2), "what is not given is deleted")
	}
}
