package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
)

// unpack writes one regular file of a tarball. Other members are ignored; no file is created under their names.
func unpack(tarball, member, to string) error {
	packed, err := os.Open(tarball)
	if err != nil {
		return err
	}
	defer packed.Close()
	plain, err := gzip.NewReader(packed)
	if err != nil {
		return fmt.Errorf("it is not a tarball: %w", err)
	}
	for files := tar.NewReader(plain); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("it has no file %s", member)
		}
		if err != nil {
			return fmt.Errorf("it is not a complete tarball: %w", err)
		}
		if header.Name == member && header.Typeflag == tar.TypeReg {
			return writeMember(files, header.Size, member, to)
		}
	}
}

func writeMember(from io.Reader, size int64, member, to string) error {
	if size > largestProgram {
		return fmt.Errorf("its %s has %s, more than %s", member, megabytes(size), megabytes(largestProgram))
	}
	file, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, from)
	return errors.Join(err, file.Close())
}
