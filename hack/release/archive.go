package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
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

// unpack returns the files in an archive of either format, by name.
func unpack(archive []byte) (map[string][]byte, error) {
	if bytes.HasPrefix(archive, []byte("PK")) {
		return unzip(archive)
	}
	compressed, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("unpacking it: %w", err)
	}
	found := map[string][]byte{}
	for files := tar.NewReader(compressed); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err == nil {
			found[header.Name], err = io.ReadAll(files)
		}
		if err != nil {
			return nil, fmt.Errorf("unpacking it: %w", err)
		}
	}
}

// unzip returns the files in a .zip archive, by name.
func unzip(archive []byte) (map[string][]byte, error) {
	files, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return nil, fmt.Errorf("unpacking it: %w", err)
	}
	found := map[string][]byte{}
	for _, file := range files.File {
		if found[file.Name], err = fs.ReadFile(files, file.Name); err != nil {
			return nil, fmt.Errorf("unpacking it: %w", err)
		}
	}
	return found, nil
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
