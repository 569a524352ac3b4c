package story

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

const (
	// rest is how long no writes may occur once everything is done.
	rest = 15 * time.Second

	// settling is the time allowed for the last reports, which are coalesced.
	settling = 3 * time.Second
)

// epilogue returns the act that checks who wrote what, and that nothing is written at rest.
func epilogue() act {
	var before map[string]int
	return act{
		title: fmt.Sprintf("Epilogue: every condition has one writer, and nothing is written for %s.", rest),
		do: func(ctx context.Context, s *stage) error {
			if err := pause(ctx, settling); err != nil {
				return err
			}
			var err error
			if before, err = writes(s.AuditLogs); err != nil {
				return err
			}
			if len(before) == 0 {
				return errors.New("the audit logs contain no writes, not even those of the previous acts")
			}
			return pause(ctx, rest)
		},
		promises: []promise{
			{"only the hub's dependency controller owns Degraded, and only the agent's availability controller owns Available", heldApart},
			{"no API server received writes, except of leases", func(_ context.Context, s *stage) error {
				after, err := writes(s.AuditLogs)
				if err != nil {
					return err
				}
				for who, n := range after {
					if n != before[who] {
						return fmt.Errorf("%s wrote %d times", who, n-before[who])
					}
				}
				return nil
			}},
		},
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// heldApart checks the managed fields of every add-on.
func heldApart(ctx context.Context, s *stage) error {
	list := &addonv1alpha1.ManagedClusterAddOnList{}
	if err := s.hub.List(ctx, list); err != nil {
		return err
	}
	owners := map[string]string{
		addonv1alpha1.ConditionDegraded:  "addon-manager-dependency",
		addonv1alpha1.ConditionAvailable: "addon-agent-availability",
	}
	for i := range list.Items {
		for kind, want := range owners {
			managers, err := holders(&list.Items[i], kind)
			if err != nil {
				return err
			}
			if slices.ContainsFunc(managers, func(m string) bool { return m != want }) {
				return fmt.Errorf("%s of %s is owned by %q", kind, client.ObjectKeyFromObject(&list.Items[i]), managers)
			}
		}
	}
	return nil
}

// holders returns the field managers that own a condition of that type.
func holders(o client.Object, kind string) ([]string, error) {
	key := fmt.Sprintf(`k:{"type":%q}`, kind)
	var managers []string
	for _, entry := range o.GetManagedFields() {
		var fields struct {
			Status struct {
				Conditions map[string]json.RawMessage `json:"f:conditions"`
			} `json:"f:status"`
		}
		if entry.FieldsV1 == nil {
			continue
		}
		if err := json.Unmarshal(entry.FieldsV1.Raw, &fields); err != nil {
			return nil, fmt.Errorf("reading the managed fields of %s: %w", client.ObjectKeyFromObject(o), err)
		}
		if _, holds := fields.Status.Conditions[key]; holds {
			managers = append(managers, entry.Manager)
		}
	}
	return managers, nil
}

// writes counts all writes in the API servers' audit logs, except writes of leases, by cluster, user and resource.
func writes(logs map[string]string) (map[string]int, error) {
	counts := map[string]int{}
	for cluster, log := range logs {
		file, err := os.Open(log)
		if err != nil {
			return nil, fmt.Errorf("reading the audit log of %s: %w", cluster, err)
		}
		defer file.Close()
		lines := bufio.NewScanner(file)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var event struct {
				Verb      string
				User      struct{ Username string }
				ObjectRef struct{ Resource, Subresource string }
			}
			if json.Unmarshal(lines.Bytes(), &event) == nil && event.ObjectRef.Resource != "leases" {
				counts[fmt.Sprintf("%s: %s (%s %s/%s)", cluster, event.User.Username, event.Verb, event.ObjectRef.Resource, event.ObjectRef.Subresource)]++
			}
		}
		if err := lines.Err(); err != nil {
			return nil, fmt.Errorf("reading the audit log of %s: %w", cluster, err)
		}
	}
	return counts, nil
}
