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

// unpack moves programs of an archive into the folder. Everything else in the archive is ignored.
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
	for files := tar.NewReader(compressed); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("unpacking it: %w", err)
		}
		if header.Typeflag != tar.TypeReg || !slices.Contains(namesOf(wanted), header.Name) {
			continue
		}
		temporary := filepath.Join(work, header.Name)
		if err := errors.Join(writeFile(temporary, files), place(temporary, filepath.Join(folder, header.Name))); err != nil {
			return err
		}
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
