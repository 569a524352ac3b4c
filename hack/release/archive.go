package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"
)

// entry is a file in an archive.
type entry struct {
	name    string
	mode    fs.FileMode
	content []byte
}

// gzipped returns a .tar.gz archive. The same entries and date result in the same bytes.
func gzipped(entries []entry, created time.Time) ([]byte, error) {
	var packed bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	files := tar.NewWriter(compressed)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Mode: int64(e.mode), Size: int64(len(e.content)), ModTime: created, Format: tar.FormatUSTAR}
		if err := files.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("packing %s: %w", e.name, err)
		}
		if _, err := files.Write(e.content); err != nil {
			return nil, fmt.Errorf("packing %s: %w", e.name, err)
		}
	}
	err = errors.Join(files.Close(), compressed.Close())
	return packed.Bytes(), err
}

// zipped returns a .zip archive. The same entries and date result in the same bytes.
func zipped(entries []entry, created time.Time) ([]byte, error) {
	var packed bytes.Buffer
	files := zip.NewWriter(&packed)
	for _, e := range entries {
		header := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: created.UTC()}
		header.SetMode(e.mode)
		w, err := files.CreateHeader(header)
		if err != nil {
			return nil, fmt.Errorf("packing %s: %w", e.name, err)
		}
		if _, err := w.Write(e.content); err != nil {
			return nil, fmt.Errorf("packing %s: %w", e.name, err)
		}
	}
	err := files.Close()
	return packed.Bytes(), err
}

// sumsFile is the name of the file with the checksums of all others, as sha256sum writes and verifies it.
const sumsFile = "SHA256SUMS"

// sumsOf returns the checksums of files, sorted by name.
func sumsOf(files map[string][]byte) []byte {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&b, "%s  %s\n", sumOf(files[name]), name)
	}
	return []byte(b.String())
}

func sumOf(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content)) }
