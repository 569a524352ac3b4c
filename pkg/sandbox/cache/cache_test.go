package cache

import "testing"

func TestFolder(t *testing.T) {
	for name, test := range map[string]struct {
		variables map[string]string
		want      string
	}{
		"TANDEM_CACHE comes first": {
			variables: map[string]string{"TANDEM_CACHE": "/a", "XDG_CACHE_HOME": "/b", "HOME": "/c"}, want: "/a",
		},
		"XDG_CACHE_HOME comes before HOME": {variables: map[string]string{"XDG_CACHE_HOME": "/b", "HOME": "/c"}, want: "/b/tandem"},
		"HOME is enough":                   {variables: map[string]string{"HOME": "/c"}, want: "/c/.cache/tandem"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Folder(func(name string) string { return test.variables[name] }); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
