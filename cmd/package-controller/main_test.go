package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

func TestMistakesAreErrors(t *testing.T) {
	for sentence, test := range map[string]struct {
		arguments []string
		want      string
	}{
		"an argument":                          {[]string{"start"}, `unexpected argument "start"`},
		"a flag that does not exist":           {[]string{"--frobnicate"}, "flag provided but not defined"},
		"no worker":                            {[]string{"--concurrency=-1"}, "--concurrency must be greater than 0, got -1"},
		"a namespace that is none":             {[]string{"--namespaces=a,*"}, `"*" is not the name of a namespace`},
		"no namespace":                         {[]string{"--namespaces="}, "--namespaces must not be empty"},
		"a host without a port":                {[]string{"--allow-hosts=localhost"}, `"localhost" is not HOST:PORT`},
		"a plain host without a port":          {[]string{"--plain-http=:80"}, `":80" is not HOST:PORT`},
		"an authority that does not exist":     {[]string{"--ca-file=/nowhere"}, "reading the certificate authority"},
		"metrics without TLS on all addresses": {[]string{"--metrics-insecure", "--metrics-bind-address=:80"}, "--metrics-insecure requires a loopback address"},
		"a kubeconfig that does not exist":     {[]string{"--kubeconfig=/nowhere"}, "finding the hub (set its kubeconfig with --kubeconfig)"},
	} {
		t.Run(sentence, func(t *testing.T) {
			err := run(t.Context(), test.arguments, new(bytes.Buffer), new(bytes.Buffer))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestHostsAreInLowerCase(t *testing.T) {
	var s settings
	if err := s.flags(new(bytes.Buffer)).Parse([]string{"--allow-hosts", "Registry:5000, [::1]:80"}); err != nil {
		t.Fatal(err)
	}
	if got := s.options.Network.AllowHosts; !slices.Equal(got, []string{"registry:5000", "[::1]:80"}) {
		t.Errorf("got %q", got)
	}
}

func TestVersionAndHelp(t *testing.T) {
	var out, errOut bytes.Buffer
	if err := run(t.Context(), []string{"--version"}, &out, &errOut); err != nil || out.String() != "package-controller devel\n" {
		t.Errorf("%v\n%s", err, out.String())
	}
	if err := run(t.Context(), []string{"--help"}, &out, &errOut); err != nil || !strings.Contains(errOut.String(), "-allow-hosts") {
		t.Errorf("%v\n%s", err, errOut.String())
	}
}
