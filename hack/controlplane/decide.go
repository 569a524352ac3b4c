package main

// observation is what is known about a wanted program before anything changes. It is filled in the order of preference: what follows
// the first that was found was not looked for.
type observation struct {
	given    string // the program in KUBEBUILDER_ASSETS
	linked   bool   // that the folder has a link to it
	cached   bool   // that the folder has the program
	onPath   string // the program on PATH, if it is of the very version
	released bool   // that it is published for this platform
}

// origin is where a program comes from.
type origin int

const (
	fromCache origin = iota
	fromGiven
	fromPath
	fromRelease
	fromModules
)

// decide returns where a program is to come from.
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

// item is a wanted program, what is known about it and where it comes from.
type item struct {
	program
	version string
	seen    observation
	from    origin
}

// those returns the items of that origin.
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
