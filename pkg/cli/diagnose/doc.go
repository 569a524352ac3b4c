// Package diagnose has the command that collects what a bug report needs, without secrets. It reads the hub, and a managed cluster if asked.
package diagnose
