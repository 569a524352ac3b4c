package packages

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tandem-addons/tandem/pkg/core/wrap"
	"github.com/tandem-addons/tandem/pkg/text"
)

// fromReleaseData is the output of `package from-release`, for programs.
type fromReleaseData struct {
	Release   string `json:"release"`
	Namespace string `json:"namespace"`
	Revision  int    `json:"revision"`
	// Status is the status that Helm has recorded.
	Status string `json:"status"`
	// Chart is the chart of the release.
	Chart   releaseChart `json:"chart"`
	Package string       `json:"package"`
	Folder  string       `json:"folder"`
	// Files lists the files that were created.
	Files []string `json:"files"`
	// Suspects lists the paths of values in the package that look like secrets.
	Suspects []string   `json:"suspects,omitempty"`
	Notes    []string   `json:"notes,omitempty"`
	Rights   rightsData `json:"rights"`
	Compared comparison `json:"compared"`
	// Commands lists what is left to do: on the managed cluster, then on the hub.
	Commands releaseCommands `json:"commands"`
}

// releaseChart is a chart, and where it was fetched from, unless it was restored from the record or is on disk.
type releaseChart struct {
	Name       string `json:"name"`
	Version    string `json:"version"`
	Repository string `json:"repository,omitempty"`
	From       string `json:"from,omitempty"`
	Digest     string `json:"digest,omitempty"`
}

// comparison is how what a package renders differs from what a release runs.
type comparison struct {
	// NotCompared is the reason if the two could not be compared.
	NotCompared string        `json:"notCompared,omitempty"`
	Objects     int           `json:"objects"`
	Changes     []wrap.Change `json:"changes,omitempty"`
}

// text returns the comparison for people.
func (c comparison) text() string {
	switch {
	case c.NotCompared != "":
		return fmt.Sprintf("What the package renders was not compared with the release: %s\n", c.NotCompared)
	case len(c.Changes) == 0:
		return fmt.Sprintf("The package renders exactly what the release runs: %s.\n", text.Plural(c.Objects, "object"))
	}
	const shown = 30
	lines := make([]string, 0, len(c.Changes))
	for _, change := range c.Changes {
		lines = append(lines, strings.TrimSuffix(changeText(change), "\n"))
	}
	return "The package does not render exactly what the release runs, because of random values, look-ups, a post-renderer, or another\n" +
		"chart (- the release only, + the package only, ~ different):\n" + strings.Join(text.Limit(lines, shown, "more"), "\n") + "\n"
}

// data returns the output for programs.
func (p *releasePackage) data(created []string, b *bundle, compared comparison) fromReleaseData {
	r := p.release
	data := fromReleaseData{
		Release: r.Release, Namespace: r.Namespace, Revision: r.Number, Status: r.Status, Package: p.name, Folder: p.folder, Files: created, Notes: p.notes,
		Chart: releaseChart{Name: r.Chart.Name, Version: r.Chart.Version}, Rights: b.rights(), Compared: compared, Commands: p.commands(" "),
	}
	if p.from != nil {
		data.Chart.Repository, data.Chart.From, data.Chart.Digest = p.from.Repository, p.from.From, p.from.Digest
	}
	for _, path := range p.suspects {
		data.Suspects = append(data.Suspects, path.String())
	}
	return data
}

// releaseCommands are the commands that hand the objects of a release over to an Instance.
type releaseCommands struct {
	OnCluster []string `json:"onCluster"`
	OnHub     []string `json:"onHub"`
}

// commands returns the commands that are left to run, with a separator before the arguments that continue a long one.
func (p *releasePackage) commands(next string) releaseCommands {
	r := p.release
	records := "secret"
	if r.Kind == "ConfigMap" {
		records = "configmap"
	}
	release, namespace := text.ShellWord(r.Release), text.ShellWord(r.Namespace)
	given := ""
	for _, name := range slices.Sorted(maps.Keys(p.secrets)) {
		given += fmt.Sprintf("%s-p %s=secret:SECRET/KEY", next, name)
	}
	return releaseCommands{
		OnCluster: []string{
			fmt.Sprintf("helm get manifest %s -n %s | kubectl annotate -n %s --overwrite -f -%skudo.dev/released-by=%s/%s meta.helm.sh/release-name- "+
				"meta.helm.sh/release-namespace-", release, namespace, namespace, next, namespace, p.name),
			fmt.Sprintf("kubectl delete %s -n %s -l owner=helm,name=%s", records, namespace, release),
		},
		OnHub: []string{
			"kubectl addon package push " + text.Word(p.folder),
			fmt.Sprintf("kubectl addon install %s --cluster CLUSTER --namespace %s%s", p.name, namespace, given),
		},
	}
}

// nextText says what is left to do.
func (p *releasePackage) nextText() string {
	commands := p.commands(" \\\n    ")
	return fmt.Sprintf("\nTo hand the running objects over to Instance %s, without deleting them, run on the cluster:\n\n  %s\n\nThen, on the hub:\n\n  %s\n",
		p.name, strings.Join(commands.OnCluster, "\n  "), strings.Join(commands.OnHub, "\n  "))
}
