package rights

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Policy is what an agent permits the plans of Instances.
type Policy struct {
	// Declared refuses plans of packages that declare no permissions.
	Declared bool

	// DefaultServiceAccount is the service account of packages that declare no permissions, as NAMESPACE/NAME, or NAME in the namespace of each
	// Instance. If empty, they have the permissions of the agent.
	DefaultServiceAccount string

	// ServiceAccountNamespaces lists the namespaces in which Instances may name another service account; * is every namespace. If nil, it is *
	// unless there is a DefaultServiceAccount.
	ServiceAccountNamespaces []string

	// Reserved lists the namespaces in which Instances name no service account, and in which nothing is installed, applied or read by reference
	// except in those of Allowed.
	Reserved, Allowed []string

	// Escalation lists the powers that packages may declare; * is every power.
	Escalation []string
}

// Subject is an Instance on the managed cluster.
type Subject struct {
	Namespace, Name string
	// ServiceAccount is the service account that it names; empty if it names none.
	ServiceAccount string
	// Permissions are those that its package declares, or the package of its parent; nil if they declare none.
	Permissions *kudo.Permissions
	// Removing is true if the Instance is being removed: then another version of the package does not help.
	Removing bool
}

// Actor is the identity as which the agent carries out the plans of an Instance. The zero value is the agent itself.
type Actor struct {
	User   string
	Groups []string
	// Permissions are those to grant to the user; nil if it has its own.
	Permissions *kudo.Permissions
}

// Refused reports that the agent does not carry out the plans of an Instance.
type Refused struct{ why string }

// Error names the flag or the field to change.
func (r *Refused) Error() string { return r.why }

// Actor returns the identity for an Instance. Declared permissions take precedence over a service account. The error is a *Refused.
func (p Policy) Actor(s Subject) (Actor, error) {
	switch {
	case s.Permissions != nil:
		return p.user(s)
	case p.Declared:
		why := "the package declares no permissions, and the agent requires them (--rights=declared)"
		if !s.Removing {
			why += ": add the output of 'kubectl addon package rights' to operator.yaml"
		}
		return Actor{}, &Refused{why}
	case s.ServiceAccount != "":
		if !p.mayName(s.Namespace) {
			return Actor{}, &Refused{fmt.Sprintf("the agent does not permit Instances in namespace %q to name a service account: "+
				"remove serviceAccountName (the agent's flag is --service-account-namespaces)", s.Namespace)}
		}
		return serviceAccount(s.Namespace, s.ServiceAccount), nil
	case p.DefaultServiceAccount != "":
		namespace, name, found := strings.Cut(p.DefaultServiceAccount, "/")
		if !found {
			namespace, name = s.Namespace, p.DefaultServiceAccount
		}
		return serviceAccount(namespace, name), nil
	default:
		return Actor{}, nil
	}
}

func (p Policy) user(s Subject) (Actor, error) {
	if powers := PowersOf(s.Permissions).Except(p.Escalation); len(powers) > 0 {
		return Actor{}, &Refused{fmt.Sprintf("permissions: %s: declare narrower rules (the agent's flag to allow it is %s)", powers, powers.Flag())}
	}
	for _, grant := range Grants(s.Permissions, s.Namespace) {
		if problem := p.Protects(grant.Namespace); problem != nil {
			return Actor{}, fmt.Errorf("permissions: %w", problem)
		}
	}
	return OwnUser(s.Namespace, s.Name, s.Permissions), nil
}

// mayName reports whether an Instance in the namespace may name a service account.
func (p Policy) mayName(namespace string) bool {
	allowed := p.ServiceAccountNamespaces
	if allowed == nil && p.DefaultServiceAccount == "" {
		allowed = []string{"*"}
	}
	return !slices.Contains(p.Reserved, namespace) && has(allowed, namespace)
}

// reserves reports whether a namespace is reserved and not allowed.
func (p Policy) reserves(namespace string) bool {
	return slices.Contains(p.Reserved, namespace) && !slices.Contains(p.Allowed, namespace)
}

// Protects returns a *Refused if nothing is applied to the namespace.
func (p Policy) Protects(namespace string) error {
	if !p.reserves(namespace) {
		return nil
	}
	return &Refused{fmt.Sprintf("nothing is applied to namespace %q: use another one (the agent's flag to allow it is --allow-namespaces)", namespace)}
}

// CheckInstall returns a *Refused if no Instance is installed in the namespace.
func (p Policy) CheckInstall(namespace string) error {
	if !p.reserves(namespace) {
		return nil
	}
	return &Refused{fmt.Sprintf("nothing is installed in namespace %q, which is reserved: delete the Instance, and create it with another "+
		"spec.installNamespace (the agent's flag to allow it is --allow-namespaces)", namespace)}
}

// CheckServiceAccount returns an error if a DefaultServiceAccount is not valid; empty is.
func CheckServiceAccount(account string) error {
	parts := strings.Split(account, "/")
	invalid := func(part string) bool { return len(validation.IsDNS1123Subdomain(part)) > 0 }
	if account != "" && (len(parts) > 2 || slices.ContainsFunc(parts, invalid)) {
		return errors.New("must be NAME or NAMESPACE/NAME of a service account")
	}
	return nil
}

// OwnUser returns the identity of an Instance with permissions of its own.
func OwnUser(namespace, name string, permissions *kudo.Permissions) Actor {
	return Actor{User: User(namespace, name), Groups: []string{Group}, Permissions: permissions}
}

// serviceAccount returns the identity of a service account, with its groups.
func serviceAccount(namespace, name string) Actor {
	return Actor{
		User:   "system:serviceaccount:" + namespace + ":" + name,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
}
