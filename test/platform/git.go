// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/fluxcd/pkg/gittestserver"
	"github.com/go-git/go-billy/v5/memfs"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-billy/v5/util"
	gogit "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// GitBranch is the branch that [Platform.PutGit] writes.
const GitBranch = "main"

// startGit serves the repositories in a folder over HTTP; serving needs the git command.
func (p *Platform) startGit() error {
	if _, err := exec.LookPath("git"); err != nil {
		p.report.state("git server", "skipped: there is no git command")
		return nil
	}
	began := time.Now()
	server := gittestserver.NewGitServer(p.gitDir()).AutoCreate()
	if err := server.StartHTTP(); err != nil {
		return fmt.Errorf("start the git server: %w", err)
	}
	p.git = server
	p.report.took("git server", "ready", began)
	return nil
}

// GitURL is the address of the Git server; a repository is <GitURL>/<name>. It is empty without a git command.
func (p *Platform) GitURL() string {
	if p.git == nil {
		return ""
	}
	return p.git.HTTPAddress()
}

// PutGit makes a repository, or a new commit in one, that contains exactly the given files on [GitBranch], and returns
// the commit.
func (p *Platform) PutGit(repository string, files Files) (string, error) {
	commit, err := putGit(filepath.Join(p.gitDir(), repository), files)
	if err != nil {
		return "", fmt.Errorf("commit to %s: %w", repository, err)
	}
	return commit, nil
}

func (p *Platform) gitDir() string { return filepath.Join(p.dir, "git") }

// putGit commits to the bare repository in a folder, through a worktree in memory.
func putGit(dir string, files Files) (string, error) {
	storage := filesystem.NewStorage(osfs.New(dir), cache.NewObjectLRUDefault())
	worktree := memfs.New()
	repository, err := gogit.InitWithOptions(storage, worktree, gogit.InitOptions{
		DefaultBranch: plumbing.NewBranchReferenceName(GitBranch),
	})
	if errors.Is(err, gogit.ErrRepositoryAlreadyExists) {
		repository, err = gogit.Open(storage, worktree)
	}
	if err != nil {
		return "", err
	}
	for path, content := range files {
		if err := util.WriteFile(worktree, path, content, 0o644); err != nil {
			return "", err
		}
	}
	tree, err := repository.Worktree()
	if err != nil {
		return "", err
	}
	// What is in the index but not in the new worktree is deleted by this.
	if err := tree.AddWithOptions(&gogit.AddOptions{All: true}); err != nil {
		return "", err
	}
	hash, err := tree.Commit("Update", &gogit.CommitOptions{
		Author:            &object.Signature{Name: "platform", Email: "platform@example.org", When: time.Now()},
		AllowEmptyCommits: true,
	})
	return hash.String(), err
}
