// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	ociv1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const titleAnnotation = "org.opencontainers.image.title"

// Files are contents by path.
type Files = map[string][]byte

// PushChart publishes a Helm chart, given its files without the leading folder, at <registry>/<repository>:<tag>.
func (p *Platform) PushChart(ctx context.Context, repository, tag, chart string, files Files) error {
	inFolder := Files{}
	for path, content := range files {
		inFolder[chart+"/"+path] = content
	}
	return p.pushTarball(ctx, repository, tag, inFolder, mediaTypes{
		config: "application/vnd.cncf.helm.config.v1+json", layer: "application/vnd.cncf.helm.chart.content.v1.tar+gzip",
	})
}

// PushFolder publishes a folder as a Flux artifact at <registry>/<repository>:<tag>.
func (p *Platform) PushFolder(ctx context.Context, repository, tag, dir string) error {
	files, err := readFolder(dir)
	if err != nil {
		return fmt.Errorf("push %s: %w", repository, err)
	}
	return p.pushTarball(ctx, repository, tag, files, mediaTypes{
		config: "application/vnd.cncf.flux.config.v1+json", layer: "application/vnd.cncf.flux.content.v1.tar+gzip",
	})
}

// PushFiles publishes one layer per file, titled with its name, as `oras push` does and the Cluster API Operator's
// fetchConfig.oci reads, at <registry>/<repository>:<tag>.
func (p *Platform) PushFiles(ctx context.Context, repository, tag string, files Files) error {
	artifact := emptyArtifact("application/vnd.unknown.config.v1+json")
	for _, path := range slices.Sorted(maps.Keys(files)) {
		var err error
		artifact, err = mutate.Append(artifact, mutate.Addendum{
			Layer:       static.NewLayer(files[path], "application/vnd.oci.image.layer.v1.tar"),
			Annotations: map[string]string{titleAnnotation: path},
		})
		if err != nil {
			return fmt.Errorf("push %s: %w", repository, err)
		}
	}
	return p.push(ctx, repository, tag, artifact)
}

// mediaTypes tell what kind of artifact one is.
type mediaTypes struct{ config, layer types.MediaType }

func (p *Platform) pushTarball(ctx context.Context, repository, tag string, files Files, kind mediaTypes) error {
	packed, err := tarball(files)
	if err != nil {
		return fmt.Errorf("push %s: %w", repository, err)
	}
	artifact, err := mutate.AppendLayers(emptyArtifact(kind.config), static.NewLayer(packed, kind.layer))
	if err != nil {
		return fmt.Errorf("push %s: %w", repository, err)
	}
	return p.push(ctx, repository, tag, artifact)
}

func (p *Platform) push(ctx context.Context, repository, tag string, artifact ociv1.Image) error {
	ref, err := name.ParseReference(fmt.Sprintf("%s/%s:%s", p.Registry(), repository, tag), name.Insecure)
	if err != nil {
		return fmt.Errorf("push %s: %w", repository, err)
	}
	if err := remote.Write(ref, artifact, remote.WithContext(ctx)); err != nil {
		return fmt.Errorf("push %s: %w", repository, err)
	}
	return nil
}

func emptyArtifact(config types.MediaType) ociv1.Image {
	return mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), config)
}

// tarball packs files reproducibly.
func tarball(files Files) ([]byte, error) {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	packed := tar.NewWriter(zipped)
	for _, path := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: path, Mode: 0o644, Size: int64(len(files[path]))}
		if err := packed.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := packed.Write(files[path]); err != nil {
			return nil, err
		}
	}
	if err := packed.Close(); err != nil {
		return nil, err
	}
	if err := zipped.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// readFolder reads all files below a folder; the paths are relative to it.
func readFolder(dir string) (Files, error) {
	files := Files{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		files[filepath.ToSlash(relative)], err = os.ReadFile(path)
		return err
	})
	return files, err
}
