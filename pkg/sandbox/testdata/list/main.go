// Command list prints the root of the file system.
package main

import (
	"fmt"
	"os"
)

func main() {
	entries, err := os.ReadDir("/")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for _, entry := range entries {
		fmt.Println(entry.Name())
	}
}
