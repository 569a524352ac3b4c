// Package change implements the commands that change add-ons and Instances, run plans, and wait for the results. It writes to the hub; join
// also writes to the managed cluster.
package change
