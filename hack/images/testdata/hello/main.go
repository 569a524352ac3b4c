// Command hello prints its version. Tests pack it because it builds faster than Tandem's programs.
package main

import "fmt"

var version string

func main() { fmt.Println("hello", version) }
