package environment

import (
	"fmt"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// User makes a client certificate for somebody and returns a config that uses it. What they may do is what RBAC says.
func (e *Environment) User(name string, groups ...string) (*rest.Config, error) {
	user, err := e.server.AddUser(envtest.User{Name: name, Groups: groups}, nil)
	if err != nil {
		return nil, fmt.Errorf("adding user %q: %w", name, err)
	}
	return user.Config(), nil
}
