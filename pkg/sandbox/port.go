package sandbox

import "github.com/tandem-addons/tandem/pkg/sandbox/port"

// allocatePorts reserves a loopback port for every key: the previous one if it is free, else any. It returns an error if too few are free.
// The ports stay reserved until release is called, even while a program restarts.
func allocatePorts(keys []string, previous map[string]int) (ports map[string]int, release func(), err error) {
	var reserved []*port.Reservation
	release = func() {
		for _, r := range reserved {
			r.Release()
		}
	}
	ports = make(map[string]int, len(keys))
	take := func(key string, r *port.Reservation) {
		reserved = append(reserved, r)
		ports[key] = r.Port
	}
	for _, key := range keys {
		if former, known := previous[key]; known {
			if r, ok := port.Take(former); ok {
				take(key, r)
			}
		}
	}
	for _, key := range keys {
		if _, done := ports[key]; done {
			continue
		}
		r, err := port.Find()
		if err != nil {
			release()
			return nil, nil, err
		}
		take(key, r)
	}
	return ports, release, nil
}

func loopback(number int) string { return port.Address(number) }
