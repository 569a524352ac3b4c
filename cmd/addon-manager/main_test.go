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
		"an argument":                       {[]string{"start"}, `unexpected argument "start"`},
		"a flag that does not exist":        {[]string{"--frobnicate"}, "flag provided but not defined"},
		"less than no requests":             {[]string{"--kube-api-qps=-1"}, "--kube-api-qps must be greater than 0, or 0 for no limit, got -1"},
		"a number of requests that is none": {[]string{"--kube-api-qps=NaN"}, "--kube-api-qps must be greater than 0, or 0 for no limit, got NaN"},
		"a burst of an unlimited rate":      {[]string{"--kube-api-burst=400"}, "--kube-api-burst is 400, but without --kube-api-qps"},
		"nothing worked on":                 {[]string{"--concurrency=-1"}, "--concurrency must be greater than 0, got -1"},
		"a namespace that is none":          {[]string{"--allow-namespaces=a,,b"}, `invalid argument "a,,b" for "--allow-namespaces" flag: "" is not the name of a namespace`},
		"one of configs that is none":       {[]string{"--config-namespaces=a,*"}, `invalid argument "a,*" for "--config-namespaces" flag: "*" is not the name of a namespace`},
		"one of agents that is none":        {[]string{"--agent-args=--allow-namespaces=*"}, `"*" is not the name of a namespace`},
		"a config without a namespace":      {[]string{"--agent-configs=a/b,c"}, `invalid argument "a/b,c" for "--agent-configs" flag: "c" is not the NAMESPACE/NAME`},
		"a config with a bad pattern":       {[]string{"--agent-configs=a/["}, `"a/[" is not the NAMESPACE/NAME`},
		"a webhook host without a name":     {[]string{"--webhook-hosts=a,,b"}, "names must not be empty"},
		"a kubeconfig that does not exist":  {[]string{"--kubeconfig=/nowhere"}, "finding the hub (set its kubeconfig with --kubeconfig)"},
	} {
		t.Run(sentence, func(t *testing.T) {
			err := run(t.Context(), test.arguments, new(bytes.Buffer), new(bytes.Buffer))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestWebhookHostsAreSeparatedByCommas(t *testing.T) {
	var s settings
	if err := s.flags(new(bytes.Buffer)).Parse([]string{"--webhook-hosts", "a.b, 127.0.0.1"}); err != nil {
		t.Fatal(err)
	}
	if got := (*names)(&s.options.WebhookHosts).String(); got != "a.b,127.0.0.1" {
		t.Errorf("got %q", got)
	}
}

func TestNamespacesAreAllowedHereAndForDeliveredAgents(t *testing.T) {
	for arguments, want := range map[string][]string{
		"":                               nil,
		"--allow-namespaces=kube-system": {"kube-system"},
		"--agent-args=--allow-namespaces=kube-system,kube-public":                      {"kube-system", "kube-public"},
		"--allow-namespaces=tandem-system --agent-args=--allow-namespaces=kube-system": {"tandem-system", "kube-system"},
	} {
		var s settings
		if err := s.flags(new(bytes.Buffer)).Parse(strings.Fields(arguments)); err != nil {
			t.Fatal(err)
		}
		if err := s.check(); err != nil || !slices.Equal(s.options.AllowedNamespaces, want) {
			t.Errorf("%q: got %q, %v", arguments, s.options.AllowedNamespaces, err)
		}
	}
}

func TestHelpIsNoMistake(t *testing.T) {
	var errOut bytes.Buffer
	if err := run(t.Context(), []string{"--help"}, new(bytes.Buffer), &errOut); err != nil || !strings.Contains(errOut.String(), "-kube-api-qps") {
		t.Errorf("%v\n%s", err, errOut.String())
	}
}
