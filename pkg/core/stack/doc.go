// Package stack decides which objects on the hub make up an add-on that runs a package, and a stack of such add-ons: packages, definitions with
// dependencies, parameters, and the clusters to install them on. It reads stack files, and touches no cluster.
package stack
