package program

import (
	"flag"
	"fmt"
)

// Limits holds the client limits of a measured program; none if zero.
type Limits struct {
	QPS   float64 `json:"qps"`
	Burst int     `json:"burst"`

	flags string // the prefix of the program's flags
}

// Bind adds the flags qps and burst, with the current limits as defaults. They set the program's --FLAGS-qps and --FLAGS-burst.
func (l *Limits) Bind(fs *flag.FlagSet, program, flags string) {
	l.flags = flags
	fs.Float64Var(&l.QPS, "qps", l.QPS, fmt.Sprintf("%s's --%s-qps", program, flags))
	fs.IntVar(&l.Burst, "burst", l.Burst, fmt.Sprintf("%s's --%s-burst", program, flags))
}

// Check rejects limits that the program would reject, and a rate without a burst, which the bare side could not share.
func (l *Limits) Check() error {
	if !(l.QPS >= 0) || l.Burst < 0 || (l.QPS > 0) != (l.Burst > 0) {
		return fmt.Errorf("-qps and -burst are %v and %d: want both greater than 0, or both 0 for no limits", l.QPS, l.Burst)
	}
	return nil
}

// Flags returns the program's flags.
func (l *Limits) Flags() []string {
	return []string{fmt.Sprintf("--%s-qps=%v", l.flags, l.QPS), fmt.Sprintf("--%s-burst=%d", l.flags, l.Burst)}
}

// Rate returns the limits as settings of a client's config.
func (l *Limits) Rate() (qps float32, burst int) {
	if l.QPS == 0 {
		return -1, 0
	}
	return float32(l.QPS), l.Burst
}

// String returns the limits for a report.
func (l *Limits) String() string {
	if l.QPS == 0 {
		return "no limit of the rate"
	}
	return fmt.Sprintf("%v requests a second, %d in a burst", l.QPS, l.Burst)
}
