// Command hello prints its version. Tests release it because it builds faster than Tandem's programs.
package main

import "fmt"

var version string

func main() { fmt.Println("hello", version) }
