package program

import (
	"flag"
	"fmt"
)

// Limits holds the client limits of a measured program.
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

// Check rejects limits that the program would reject.
func (l *Limits) Check() error {
	if l.QPS <= 0 || l.Burst < 1 {
		return fmt.Errorf("-qps and -burst are %v and %d: want more than 0", l.QPS, l.Burst)
	}
	return nil
}

// Flags returns the program's flags.
func (l *Limits) Flags() []string {
	return []string{fmt.Sprintf("--%s-qps=%v", l.flags, l.QPS), fmt.Sprintf("--%s-burst=%d", l.flags, l.Burst)}
}
