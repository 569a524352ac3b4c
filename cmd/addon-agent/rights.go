package main

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tandem-addons/tandem/pkg/core/rights"
)

// permissions holds the values of the flags about the permissions of plans.
type permissions struct {
	mode                       string
	account, accounts, allowed string
	escalation                 powers
}

func (p *permissions) bind(flags *flag.FlagSet) {
	flags.StringVar(&p.mode, "rights", "any",
		"Packages that may run: declared (those that declare their permissions in operator.yaml), or any. Packages that declare none run as\n"+
			"--default-service-account, or with all permissions of the agent.")
	flags.StringVar(&p.account, "default-service-account", "",
		"Service account (NAME in the namespace of each Instance, or NAMESPACE/NAME) as which packages run that declare no permissions.")
	flags.StringVar(&p.accounts, "service-account-namespaces", "",
		"Comma-separated namespaces in which Instances may name a service account (spec.serviceAccountName), * for all, or none. If empty, all\n"+
			"without --default-service-account, and none with it. Reserved namespaces (see --allow-namespaces) are never included.")
	flags.StringVar(&p.allowed, "allow-namespaces", "",
		"Comma-separated namespaces in which packages may be installed, and to which they may apply objects, although they are reserved:\n"+
			"kube-system, kube-public, kube-node-lease, open-cluster-management-agent, open-cluster-management-hub and the agent's namespace.\n"+
			"To install in them, addon-manager needs its own flag of this name.")
	flags.Var(&p.escalation, "allow-escalation",
		"Comma-separated powers that packages may declare, all of them without a value: permissions by which a package can exceed those that\n"+
			"it declares, or that reach reserved namespaces. Powers: "+strings.Join(rights.PowerNames(), ", ")+".")
}

// powers is the value of --allow-escalation.
type powers []string

func (p *powers) String() string { return strings.Join(*p, ",") }

// IsBoolFlag returns true: without a value, the flag allows all powers.
func (*powers) IsBoolFlag() bool { return true }

// Set parses a comma-separated list, or a boolean.
func (p *powers) Set(list string) error {
	all, err := strconv.ParseBool(list)
	switch {
	case err == nil && all:
		*p = powers{"*"}
		return nil
	case err == nil || list == "":
		*p = nil
		return nil
	}
	names := strings.Split(list, ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
		if !slices.Contains(rights.PowerNames(), names[i]) {
			return fmt.Errorf("unknown power %q: must be true, false or a list of %s", names[i], strings.Join(rights.PowerNames(), ", "))
		}
	}
	*p = names
	return nil
}

// policy returns the policy that the flags describe; the agent is in the namespace.
func (p *permissions) policy(namespace string) (rights.Policy, error) {
	policy := rights.Policy{DefaultServiceAccount: p.account, Escalation: p.escalation, Reserved: rights.ReservedNamespaces(namespace)}
	switch p.mode {
	case "declared":
		policy.Declared = true
	case "any":
	default:
		return policy, fmt.Errorf(`invalid argument %q for "--rights" flag: must be declared or any`, p.mode)
	}
	if err := rights.CheckServiceAccount(p.account); err != nil {
		return policy, fmt.Errorf(`invalid argument %q for "--default-service-account" flag: %w`, p.account, err)
	}
	var wrong, alsoWrong error
	switch p.accounts {
	case "*":
		policy.ServiceAccountNamespaces = []string{"*"}
	case "none":
		policy.ServiceAccountNamespaces = []string{}
	default:
		policy.ServiceAccountNamespaces, wrong = namespaces("service-account-namespaces", p.accounts)
	}
	policy.Allowed, alsoWrong = namespaces("allow-namespaces", p.allowed)
	return policy, errors.Join(wrong, alsoWrong)
}

// namespaces parses the value of a flag that lists namespaces.
func namespaces(flag, list string) ([]string, error) {
	names, err := rights.ParseNamespaces(list)
	if err != nil {
		return nil, fmt.Errorf(`invalid argument %q for "--%s" flag: %w`, list, flag, err)
	}
	return names, nil
}
