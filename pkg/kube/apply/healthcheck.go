package apply

import (
	upstream "open-cluster-management.io/api/addon/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

// ReleaseHealthCheck returns the operations of a status patch that return the health check mode to OCM's klusterlet.
func ReleaseHealthCheck(addOn *addonv1alpha1.ManagedClusterAddOn) []Operation {
	mode := addOn.Status.HealthCheck.Mode
	if mode != upstream.HealthCheckModeCustomized {
		return nil
	}
	return []Operation{
		{Op: "test", Path: "/status/healthCheck/mode", Value: mode},
		{Op: "remove", Path: "/status/healthCheck"},
	}
}
