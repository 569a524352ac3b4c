package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// addBundle downloads the archive with all programs that a release publishes for these versions and this platform, and unpacks the missing ones. It has the
// name of the folder, so it never contains programs of another version.
func (i *installer) addBundle(ctx context.Context, missing []program, work, folder string) error {
	name := filepath.Base(folder) + "_" + strings.ReplaceAll(i.platform, "/", "_") + ".tar.gz"
	i.log("downloading %s", name)
	var received atomic.Int64
	started := time.Now()
	stop := every(i.interval, func() { i.log("%d MB downloaded (%s)", received.Load()>>20, time.Since(started).Round(time.Second)) })
	defer stop()
	archive := filepath.Join(work, "bundle")
	if err := i.fetchVerified(ctx, i.bundle+"/"+name, archive, &received); err != nil {
		return err
	}
	return unpack(archive, missing, work, folder)
}

// maxProgram is the maximum size of an unpacked program in bytes.
const maxProgram = 1 << 30

// unpack moves programs of an archive into the folder, once the whole archive has been read. Everything else in the archive is ignored.
func unpack(archive string, wanted []program, work, folder string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	compressed, err := gzip.NewReader(file)
	if err != nil {
		return fmt.Errorf("unpacking it: %w", err)
	}
	unpacked, err := extract(tar.NewReader(compressed), namesOf(wanted), work)
	if err != nil {
		return fmt.Errorf("unpacking it: %w", err)
	}
	for _, name := range unpacked {
		err = errors.Join(err, place(filepath.Join(work, name), filepath.Join(folder, name)))
	}
	return err
}

// extract writes the files of the wanted names into a folder, and returns the names that it has found.
func extract(files *tar.Reader, wanted []string, folder string) ([]string, error) {
	var found []string
	for {
		header, err := files.Next()
		switch {
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil:
			return nil, err
		case header.Typeflag != tar.TypeReg || !slices.Contains(wanted, header.Name) || slices.Contains(found, header.Name):
			continue
		case header.Size > maxProgram:
			return nil, fmt.Errorf("%s has %d bytes", header.Name, header.Size)
		}
		if err := writeFile(filepath.Join(folder, header.Name), files); err != nil {
			return nil, err
		}
		found = append(found, header.Name)
	}
}

// writeFile writes everything that is read into a file.
func writeFile(name string, from io.Reader) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, from)
	return errors.Join(err, file.Close())
}
