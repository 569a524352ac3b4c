package endpoint

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Proxies are the networks of proxies whose header X-Forwarded-For is believed. As a flag, they are a comma-separated list of CIDRs and IPs.
type Proxies []netip.Prefix

// String returns the flag's value.
func (p *Proxies) String() string {
	texts := make([]string, len(*p))
	for i, network := range *p {
		texts[i] = network.String()
	}
	return strings.Join(texts, ",")
}

// Set parses the flag's value.
func (p *Proxies) Set(value string) error {
	*p = nil
	for text := range strings.SplitSeq(value, ",") {
		network, err := netip.ParsePrefix(strings.TrimSpace(text))
		if address, single := netip.ParseAddr(strings.TrimSpace(text)); single == nil {
			network, err = address.Prefix(address.BitLen())
		}
		if err != nil {
			return fmt.Errorf("%q is neither a CIDR, such as 10.0.0.0/8, nor an IP", text)
		}
		*p = append(*p, network.Masked())
	}
	return nil
}

// Client returns the network of the client that sends a request: its peer or, if that is a proxy, the last address in X-Forwarded-For that is
// not one. Addresses before it were sent by the client, and prove nothing. isOne is false if the address may belong to many clients.
func (p Proxies) Client(r *http.Request) (client netip.Prefix, isOne bool) {
	address := addressOf(r.RemoteAddr)
	forwarded := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, text := range slices.Backward(forwarded) {
		next := addressOf(strings.TrimSpace(text))
		if !p.contains(address) || !next.IsValid() {
			break
		}
		address = next
	}
	return networkOf(address), !p.isShared(address)
}

// contains reports whether an address belongs to a proxy.
func (p Proxies) contains(address netip.Addr) bool {
	return slices.ContainsFunc(p, func(network netip.Prefix) bool { return network.Contains(address) })
}

// isShared reports whether an address may belong to many clients: it is a proxy or the loopback address, at which `kubectl port-forward`
// arrives.
func (p Proxies) isShared(address netip.Addr) bool {
	return address.IsLoopback() || p.contains(address)
}

// addressOf parses an IP, or IP:PORT. Of what is neither it returns the zero value.
func addressOf(text string) netip.Addr {
	if host, _, err := net.SplitHostPort(text); err == nil {
		text = host
	}
	address, _ := netip.ParseAddr(strings.Trim(text, "[]"))
	return address.Unmap().WithZone("")
}

// networkOf returns what one client is counted as: an IPv4 address, or the network of an IPv6 address, of which one machine has any number.
func networkOf(address netip.Addr) netip.Prefix {
	bits := 64
	if address.Is4() {
		bits = 32
	}
	network, _ := address.Prefix(bits) // the zero value of an address that is unknown
	return network
}
