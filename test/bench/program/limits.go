package program

import (
	"flag"
	"fmt"
)

// Limits are those of a client of a program that is measured.
type Limits struct {
	QPS   float64 `json:"qps"`
	Burst int     `json:"burst"`

	flags string // what the program calls them
}

// Bind adds the flags qps and burst. They become the program's --FLAGS-qps and --FLAGS-burst, and are what the limits are by default.
func (l *Limits) Bind(fs *flag.FlagSet, program, flags string) {
	l.flags = flags
	fs.Float64Var(&l.QPS, "qps", l.QPS, fmt.Sprintf("%s's --%s-qps", program, flags))
	fs.IntVar(&l.Burst, "burst", l.Burst, fmt.Sprintf("%s's --%s-burst", program, flags))
}

// Check refuses what the program would.
func (l *Limits) Check() error {
	if l.QPS <= 0 || l.Burst < 1 {
		return fmt.Errorf("-qps and -burst are %v and %d: want more than 0", l.QPS, l.Burst)
	}
	return nil
}

// Flags are the program's.
func (l *Limits) Flags() []string {
	return []string{fmt.Sprintf("--%s-qps=%v", l.flags, l.QPS), fmt.Sprintf("--%s-burst=%d", l.flags, l.Burst)}
}
