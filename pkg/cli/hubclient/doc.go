// Package hubclient connects the commands to the hub: it reads clusters, add-ons and their definitions, selects clusters, watches changes,
// and adds advice to errors. It only reads the hub.
package hubclient
