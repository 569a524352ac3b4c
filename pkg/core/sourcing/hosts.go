package sourcing

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Hosts are the hosts that an attempt may reach.
type Hosts struct {
	// own is the host of the source, the only one that gets its credentials.
	own []string
	// allowed are the others.
	allowed []string
}

// HostsOf returns the hosts that a source may reach.
func HostsOf(spec *kudo.PackageSourceSpec) (Hosts, error) {
	place := ""
	switch {
	case spec.Package != nil:
		place = spec.Package.Reference
	case spec.Chart != nil:
		place = spec.Chart.Repository
	}
	parsed, err := url.Parse(place)
	if err != nil || parsed.Host == "" || parsed.User != nil {
		return Hosts{}, Failed(kudo.ReasonInvalidSource, fmt.Errorf("%s is not the URL of a registry or a repository", text.Quote(place)))
	}
	hosts := Hosts{own: ServersOf(parsed.Host)}
	for _, host := range spec.AllowedHosts {
		hosts.allowed = append(hosts.allowed, ServersOf(host)...)
	}
	return hosts, nil
}

// ServersOf returns the names of the server of a host: the registry of Docker Hub has another one.
func ServersOf(host string) []string {
	const dockerHub, dockerServer = "docker.io", "registry-1.docker.io"
	if host = canonical(host); host == dockerHub || host == "index."+dockerHub {
		return []string{dockerHub, dockerServer}
	}
	return []string{host}
}

// canonical returns a host in lower case, without the port of https.
func canonical(host string) string {
	return strings.TrimSuffix(strings.ToLower(host), ":443")
}

// IsOwn reports whether a host is the one of the source.
func (h Hosts) IsOwn(host string) bool { return slices.Contains(h.own, canonical(host)) }

// Check returns an error unless a host may be reached.
func (h Hosts) Check(host string) error {
	if h.IsOwn(host) || slices.Contains(h.allowed, canonical(host)) {
		return nil
	}
	return &HostError{Host: canonical(host), Own: h.own[0]}
}

// CheckAddress returns an error for an address of this machine, of its links, or of the metadata service of a cloud.
func CheckAddress(host string, address netip.Addr) error {
	plain := unwrap(address)
	if !plain.IsValid() || plain.IsUnspecified() || plain.IsLoopback() || plain.IsLinkLocalUnicast() || plain.IsMulticast() || isReserved(plain) {
		return &AddressError{Host: host, Address: address}
	}
	return nil
}

// unwrap returns the address of IPv4 that one of IPv6 contains (mapped, or by NAT64 or 6to4), without its zone.
func unwrap(address netip.Addr) netip.Addr {
	address = address.WithZone("").Unmap()
	if !address.Is6() {
		return address
	}
	bytes := address.As16()
	switch {
	case netip.MustParsePrefix("64:ff9b::/96").Contains(address), netip.MustParsePrefix("::/96").Contains(address) && bytes[12] != 0:
		return netip.AddrFrom4([4]byte(bytes[12:]))
	case netip.MustParsePrefix("2002::/16").Contains(address):
		return netip.AddrFrom4([4]byte(bytes[2:6]))
	}
	return address
}

// isReserved reports whether an address is of this network (RFC 1122), broadcast, or of a metadata service outside of link-local addresses.
func isReserved(address netip.Addr) bool {
	for _, prefix := range []string{"0.0.0.0/8", "255.255.255.255/32", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32", "fd00:ec2::254/128"} {
		if netip.MustParsePrefix(prefix).Contains(address) {
			return true
		}
	}
	return false
}
