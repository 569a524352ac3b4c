package sourcing

import (
	"fmt"
	"net/netip"

	"github.com/tandem-addons/tandem/pkg/text"
)

// HostError is the error of a host that is neither the one of the source nor allowed.
type HostError struct{ Host, Own string }

func (e *HostError) Error() string {
	host := text.Escape(text.Truncate(e.Host, maxVersion))
	return fmt.Sprintf("host %s is not allowed: the package, its registry or a redirect refers to it, and the source is at %s; add %s to spec.allowedHosts if that is right",
		host, e.Own, host)
}

// AddressError is the error of a host with an address that no source may reach.
type AddressError struct {
	Host    string
	Address netip.Addr
}

func (e *AddressError) Error() string {
	return fmt.Sprintf("host %s has address %s, which packages must not be read from: an administrator may allow it with --allow-hosts of package-controller",
		text.Escape(text.Truncate(e.Host, maxVersion)), e.Address)
}
