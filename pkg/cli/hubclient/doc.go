// Package hubclient connects the commands to the hub: it reads clusters, add-ons and their definitions, selects clusters, follows what
// changes, and says what to do where the hub refuses. It reads the hub.
package hubclient
