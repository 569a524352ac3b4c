// Command hello says its version. The tests pack it: it is built sooner than Tandem's programs.
package main

import "fmt"

var version string

func main() { fmt.Println("hello", version) }
