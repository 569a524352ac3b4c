package main

// observation is the state of a requested program before any change. Fields are filled in order of preference: fields after the first match
// are not observed.
type observation struct {
	given    string // the program in KUBEBUILDER_ASSETS
	linked   bool   // whether the folder has a link to it
	cached   bool   // whether the folder has the program
	onPath   string // the program on PATH, if its version matches exactly
	released bool   // whether it is published for this platform
}

// origin is the source of a program.
type origin int

const (
	fromCache origin = iota
	fromGiven
	fromPath
	fromRelease
	fromModules
)

// decide returns the origin of a program.
func decide(seen observation, downloads bool) origin {
	switch {
	case seen.given != "" && !seen.linked:
		return fromGiven
	case seen.given != "" || seen.cached:
		return fromCache
	case seen.onPath != "":
		return fromPath
	case seen.released && downloads:
		return fromRelease
	default:
		return fromModules
	}
}

// item is a requested program with its observed state and origin.
type item struct {
	program
	version string
	seen    observation
	from    origin
}

// those returns the items that have the given origin.
func those(items []*item, from origin) []*item {
	var found []*item
	for _, i := range items {
		if i.from == from {
			found = append(found, i)
		}
	}
	return found
}

func names(items []*item) []string {
	var found []string
	for _, i := range items {
		found = append(found, i.name)
	}
	return found
}
