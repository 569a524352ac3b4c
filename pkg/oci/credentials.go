package oci

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
)

// Credentials are the user names, passwords and tokens for registries, by host.
type Credentials struct{ find auth.CredentialFunc }

// NoCredentials returns credentials for no registry.
func NoCredentials() Credentials {
	return Credentials{func(context.Context, string) (auth.Credential, error) { return auth.EmptyCredential, nil }}
}

// DockerCredentials returns the credentials in the text of a config.json of docker. Helpers that it names are never run.
func DockerCredentials(config []byte) (Credentials, error) {
	store, err := credentials.NewMemoryStoreFromDockerConfig(config)
	if err != nil {
		return Credentials{}, errors.New("it is not the config.json of docker, with auths by host") // the error may quote a password
	}
	return Credentials{credentials.Credential(store)}, nil
}

// PasswordCredentials returns a user name and a password for hosts.
func PasswordCredentials(hosts []string, username, password string) Credentials {
	byHost := map[string]bool{}
	for _, host := range hosts {
		byHost[strings.ToLower(host)] = true
	}
	return Credentials{func(_ context.Context, host string) (auth.Credential, error) {
		if !byHost[strings.ToLower(host)] {
			return auth.EmptyCredential, nil
		}
		return auth.Credential{Username: username, Password: password}, nil
	}}
}

// Only returns the credentials for hosts for which a function returns true.
func (c Credentials) Only(isAllowed func(host string) bool) Credentials {
	return Credentials{func(ctx context.Context, host string) (auth.Credential, error) {
		if !isAllowed(host) {
			return auth.EmptyCredential, nil
		}
		return c.find(ctx, host)
	}}
}

// Password returns the user name and the password for a host; none if it has none, or only a token.
func (c Credentials) Password(ctx context.Context, host string) (username, password string, err error) {
	found, err := c.find(ctx, host)
	if err != nil {
		return "", "", fmt.Errorf("reading the credentials for %s: %w", host, err)
	}
	return found.Username, found.Password, nil
}

// Find returns the credentials as the library of registries reads them.
func (c Credentials) Find() auth.CredentialFunc { return c.find }
