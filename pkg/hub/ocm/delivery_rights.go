package ocm

import (
	"fmt"
	"strings"

	"github.com/tandem-addons/tandem/pkg/core/rights"
)

// The variables of an AddOnDeploymentConfig that restrict what plans may do, and the flags of addon-agent that they set.
const (
	variableRights         = "Rights"
	variableServiceAccount = "DefaultServiceAccount"

	flagRights         = "--rights="
	flagServiceAccount = "--default-service-account="
)

// rightsArguments returns the arguments of addon-agent for the variables about the permissions of plans. base are the arguments of all agents:
// an author of the configuration of one cluster can restrict its agent further, and never less.
func rightsArguments(base []string, variables map[string]string) ([]string, error) {
	var arguments []string
	mode, all := variables[variableRights], valueOf(base, flagRights)
	switch {
	case mode == "" || mode == all:
	case mode == "declared":
		arguments = append(arguments, flagRights+mode)
	case mode != "any":
		return nil, fmt.Errorf("variable %s is %q: must be declared or any", variableRights, mode)
	case all == "declared":
		return nil, fmt.Errorf("variable %s is any, but addon-manager requires declared for all agents (--agent-args): "+
			"a configuration can restrict permissions, not extend them", variableRights)
	}
	account, common := variables[variableServiceAccount], valueOf(base, flagServiceAccount)
	wrong := rights.CheckServiceAccount(account)
	switch {
	case account == "" || account == common:
	case common != "":
		return nil, fmt.Errorf("variable %s is %q, but addon-manager sets %q for all agents (--agent-args): "+
			"a configuration can restrict permissions, not extend them", variableServiceAccount, account, common)
	case wrong != nil:
		return nil, fmt.Errorf("variable %s is %q: %w", variableServiceAccount, account, wrong)
	default:
		arguments = append(arguments, flagServiceAccount+account)
	}
	return arguments, nil
}

// valueOf returns the value of a flag, the last one if it is repeated; empty if it is not set.
func valueOf(arguments []string, flag string) string {
	value := ""
	for _, argument := range arguments {
		if v, is := strings.CutPrefix(argument, flag); is {
			value = v
		}
	}
	return value
}
