package cli

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/tandem-addons/tandem/pkg/cli/clitest"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
)

// run executes the plugin and returns everything that it printed, its error and its exit code.
func run(args ...string) (output string, code int) {
	var out bytes.Buffer
	cmd := New(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &out}, "v0.0.0")
	cmd.SetArgs(args)
	err := cmd.Execute()
	if err != nil {
		out.WriteString("error: " + err.Error() + "\n")
	}
	return out.String(), terminal.ExitCode(err)
}

func TestCommands(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		code int
	}{
		"verify-valid":           {[]string{"package", "verify", "testdata/valid"}, terminal.ExitOK},
		"verify-broken":          {[]string{"package", "verify", "testdata/broken"}, terminal.ExitFailure},
		"verify-valid-json":      {[]string{"package", "verify", "testdata/valid", "-o", "json"}, terminal.ExitOK},
		"verify-broken-json":     {[]string{"package", "verify", "testdata/broken", "-o", "json"}, terminal.ExitFailure},
		"verify-family":          {[]string{"package", "verify", "testdata/family"}, terminal.ExitOK},
		"verify-family-json":     {[]string{"package", "verify", "testdata/family", "-o", "json"}, terminal.ExitOK},
		"verify-broken-yaml":     {[]string{"package", "verify", "testdata/broken", "-o", "yaml"}, terminal.ExitFailure},
		"verify-broken-jsonpath": {[]string{"package", "verify", "testdata/broken", "-o", "jsonpath={.findings[*].line}"}, terminal.ExitFailure},
		"verify-circle":          {[]string{"package", "verify", "testdata/circle/aa"}, terminal.ExitFailure},
		"verify-circle-json":     {[]string{"package", "verify", "testdata/circle/aa", "-o", "json"}, terminal.ExitFailure},
		"package-tree":           {[]string{"package", "tree", "testdata/family"}, terminal.ExitOK},
		"package-tree-json":      {[]string{"package", "tree", "testdata/family", "-o", "json"}, terminal.ExitOK},
		"package-tree-name":      {[]string{"package", "tree", "testdata/family", "-o", "name"}, terminal.ExitOK},
		"package-tree-circle":    {[]string{"package", "tree", "testdata/circle/aa"}, terminal.ExitFailure},
		"push-circle":            {[]string{"package", "push", "testdata/circle/aa"}, terminal.ExitFailure},
		"verify-output":          {[]string{"package", "verify", "testdata/valid", "-o", "name"}, terminal.ExitUsage},
		"verify-file":            {[]string{"package", "verify", "testdata/valid/operator.yaml"}, terminal.ExitFailure},
		"verify-missing":         {[]string{"package", "verify", "testdata/none"}, terminal.ExitFailure},
		"verify-no-argument":     {[]string{"package", "verify"}, terminal.ExitUsage},
		"push-broken":            {[]string{"package", "push", "testdata/broken"}, terminal.ExitFailure},
		"status-no-cluster":      {[]string{"plan", "status", "kafka"}, terminal.ExitUsage},
		"status-namespace":       {[]string{"plan", "status", "kafka", "--cluster", "cluster1", "-n", "cluster1"}, terminal.ExitUsage},
		"tree-no-cluster":        {[]string{"tree"}, terminal.ExitUsage},
		"tree-two-add-ons":       {[]string{"tree", "kafka", "shop", "--cluster", "cluster1"}, terminal.ExitUsage},
		"tree-output":            {[]string{"tree", "--cluster", "cluster1", "-o", "jsonpath"}, terminal.ExitUsage},
		"why-no-argument":        {[]string{"why", "--cluster", "cluster1"}, terminal.ExitUsage},
		"why-no-cluster":         {[]string{"why", "kafka"}, terminal.ExitUsage},
		"why-namespace":          {[]string{"why", "kafka", "--cluster", "cluster1", "-n", "cluster1"}, terminal.ExitUsage},
		"dependents-no-argument": {[]string{"dependents"}, terminal.ExitUsage},
		"dependents-output":      {[]string{"dependents", "kafka", "-o", "xml"}, terminal.ExitUsage},
		"dependents-namespace":   {[]string{"dependents", "kafka", "-n", "cluster1"}, terminal.ExitUsage},
		"uninstall-no-cluster":   {[]string{"uninstall", "kafka"}, terminal.ExitUsage},
		"uninstall-timeout":      {[]string{"uninstall", "kafka", "--cluster", "cluster1", "--timeout", "-1s"}, terminal.ExitUsage},
		"uninstall-namespace":    {[]string{"uninstall", "kafka", "--cluster", "cluster1", "-n", "cluster1"}, terminal.ExitUsage},
		"install-nowhere":        {[]string{"install", "kafka"}, terminal.ExitUsage},
		"install-no-argument":    {[]string{"install", "--cluster", "cluster1"}, terminal.ExitUsage},
		"install-folder":         {[]string{"install", "./kafka", "--cluster", "cluster1"}, terminal.ExitUsage},
		"install-output":         {[]string{"install", "kafka", "--cluster", "cluster1", "-o", "json"}, terminal.ExitUsage},
		"install-placement":      {[]string{"install", "kafka", "--placement", "a/b/c"}, terminal.ExitUsage},
		"install-file":           {[]string{"install", "kafka", "--cluster", "cluster1", "-P", "testdata/none.yaml"}, terminal.ExitFailure},
		"update-no-parameter":    {[]string{"update", "kafka", "--cluster", "cluster1"}, terminal.ExitUsage},
		"update-namespace":       {[]string{"update", "kafka", "--cluster", "cluster1", "-n", "data", "-p", "A=1"}, terminal.ExitUsage},
		"upgrade-two-versions":   {[]string{"upgrade", "kafka", "--cluster", "cluster1", "--version", "1.0.0", "--operator-version", "1.0.0"}, terminal.ExitUsage},
		"show":                   {[]string{"package", "show", "testdata/versions/old"}, terminal.ExitOK},
		"show-wide":              {[]string{"package", "show", "testdata/versions/new", "-o", "wide"}, terminal.ExitOK},
		"show-yaml":              {[]string{"package", "show", "testdata/family", "-o", "yaml"}, terminal.ExitOK},
		"show-name":              {[]string{"package", "show", "testdata/family", "-o", "name"}, terminal.ExitOK},
		"show-parameters":        {[]string{"package", "show", "parameters", "testdata/versions/old"}, terminal.ExitOK},
		"show-plans":             {[]string{"package", "show", "plans", "testdata/versions/old"}, terminal.ExitOK},
		"show-tasks":             {[]string{"package", "show", "tasks", "testdata/family"}, terminal.ExitOK},
		"show-dependencies":      {[]string{"package", "show", "dependencies", "testdata/family"}, terminal.ExitOK},
		"show-plans-json":        {[]string{"package", "show", "plans", "testdata/family", "-o", "json"}, terminal.ExitOK},
		"show-broken":            {[]string{"package", "show", "testdata/broken"}, terminal.ExitFailure},
		"show-no-argument":       {[]string{"package", "show"}, terminal.ExitUsage},
		"show-unknown-flag":      {[]string{"package", "show", "kafka", "--frobnicate"}, terminal.ExitUsage},
		"diff":                   {[]string{"package", "diff", "testdata/versions/old", "testdata/versions/new"}, terminal.ExitOK},
		"diff-wide":              {[]string{"package", "diff", "testdata/versions/old", "testdata/versions/new", "-o", "wide"}, terminal.ExitOK},
		"diff-json":              {[]string{"package", "diff", "testdata/versions/new", "testdata/versions/old", "-o", "json"}, terminal.ExitOK},
		"diff-same":              {[]string{"package", "diff", "testdata/valid", "testdata/valid"}, terminal.ExitOK},
		"diff-operators":         {[]string{"package", "diff", "testdata/family/packages/cache", "testdata/family/packages/database"}, terminal.ExitOK},
		"diff-no-argument":       {[]string{"package", "diff", "testdata/valid"}, terminal.ExitUsage},
		"list-argument":          {[]string{"package", "list", "kafka"}, terminal.ExitUsage},
		"new-no-argument":        {[]string{"package", "new"}, terminal.ExitUsage},
		"new-bad-name":           {[]string{"package", "new", "My_Shop"}, terminal.ExitFailure},
		"new-not-empty":          {[]string{"package", "new", "shop", "testdata/valid"}, terminal.ExitFailure},
		"pack-broken":            {[]string{"package", "pack", "testdata/broken"}, terminal.ExitFailure},
		"pack-outside":           {[]string{"package", "pack", "testdata/circle/aa"}, terminal.ExitFailure},
		"pack-missing":           {[]string{"package", "pack", "testdata/none"}, terminal.ExitFailure},
		"index-no-argument":      {[]string{"package", "index"}, terminal.ExitUsage},
		"index-nothing":          {[]string{"package", "index", "testdata/valid"}, terminal.ExitFailure},
		"index-missing":          {[]string{"package", "index", "testdata/none"}, terminal.ExitFailure},
		"index-url":              {[]string{"package", "index", "testdata/valid", "--url", "packages"}, terminal.ExitUsage},
		"plan-run-no-plan":       {[]string{"plan", "run", "kafka", "--cluster", "cluster1"}, terminal.ExitUsage},
		"plan-run-no-cluster":    {[]string{"plan", "run", "kafka", "deploy"}, terminal.ExitUsage},
		"plan-run-parameter":     {[]string{"plan", "run", "kafka", "deploy", "--cluster", "cluster1", "-p", "SIZE"}, terminal.ExitUsage},
		"plan-wait-timeout":      {[]string{"plan", "wait", "kafka", "--cluster", "cluster1", "--timeout", "-1s"}, terminal.ExitUsage},
		"plan-cancel-no-cluster": {[]string{"plan", "cancel", "kafka"}, terminal.ExitUsage},
		"plan-history-output":    {[]string{"plan", "history", "kafka", "--cluster", "cluster1", "-o", "name"}, terminal.ExitUsage},
		"status-watch-output":    {[]string{"plan", "status", "kafka", "--cluster", "cluster1", "--watch", "-o", "json"}, terminal.ExitUsage},
		"enable-nowhere":         {[]string{"enable", "kafka"}, terminal.ExitUsage},
		"enable-twice":           {[]string{"enable", "kafka", "--cluster", "cluster1", "--all-clusters"}, terminal.ExitUsage},
		"enable-selector":        {[]string{"enable", "kafka", "--selector", "a in b"}, terminal.ExitUsage},
		"enable-empty-cluster":   {[]string{"enable", "kafka", "--cluster", "cluster1,,cluster2"}, terminal.ExitUsage},
		"disable-nowhere":        {[]string{"disable", "kafka"}, terminal.ExitUsage},
		"disable-namespace":      {[]string{"disable", "kafka", "--cluster", "cluster1", "-n", "data"}, terminal.ExitUsage},
		"enable-namespace":       {[]string{"enable", "kafka", "--cluster", "cluster1", "-n", "My_Data"}, terminal.ExitUsage},
		"install-namespace":      {[]string{"install", "kafka", "--cluster", "cluster1", "-n", "My_Data"}, terminal.ExitUsage},
		"get-namespace":          {[]string{"get", "-n", "cluster1"}, terminal.ExitUsage},
		"get-two-add-ons":        {[]string{"get", "kafka", "shop"}, terminal.ExitUsage},
		"fleet-argument":         {[]string{"fleet", "kafka"}, terminal.ExitUsage},
		"fleet-output":           {[]string{"fleet", "-o", "name"}, terminal.ExitUsage},
		"join-no-cluster":        {[]string{"join", "cluster1"}, terminal.ExitUsage},
		"join-name":              {[]string{"join", "Cluster_1", "--cluster-context", "cluster1"}, terminal.ExitUsage},
		"diagnose-two-clusters":  {[]string{"diagnose", "--cluster", "cluster1,cluster2", "--cluster-context", "cluster1"}, terminal.ExitUsage},
		"diagnose-timeout":       {[]string{"diagnose", "--timeout", "0s"}, terminal.ExitUsage},
		"version-argument":       {[]string{"version", "v1"}, terminal.ExitUsage},
		"version-twice":          {[]string{"version", "--cluster", "cluster1", "--all-clusters"}, terminal.ExitUsage},
		"version-client-json":    {[]string{"version", "--client", "-o", "json"}, terminal.ExitOK},
		"show-plans-broken":      {[]string{"package", "show", "plans", "testdata/broken"}, terminal.ExitFailure},
		"show-tasks-no-argument": {[]string{"package", "show", "tasks"}, terminal.ExitUsage},
		"show-parameters-output": {[]string{"package", "show", "parameters", "testdata/valid", "-o", "xml"}, terminal.ExitUsage},
		"show-dependencies-two":  {[]string{"package", "show", "dependencies", "testdata/valid", "testdata/family"}, terminal.ExitUsage},
		"unknown-command":        {[]string{"package", "frobnicate"}, terminal.ExitUsage},
		"unknown-flag":           {[]string{"plan", "status", "--frobnicate"}, terminal.ExitUsage},
		"misspelled-command":     {[]string{"tre", "--cluster", "cluster1"}, terminal.ExitUsage},
		"unknown-flag-of-all":    {[]string{"--frobnicate"}, terminal.ExitUsage},
		"version":                {[]string{"--version"}, terminal.ExitOK},
	} {
		t.Run(name, func(t *testing.T) {
			output, code := run(test.args...)
			if code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			clitest.Golden(t, name, output)
		})
	}
}

func TestVerifyPointsToTheFolderOfTheOperator(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "operator"), os.DirFS("testdata/valid")); err != nil {
		t.Fatal(err)
	}
	output, code := run("package", "verify", dir)
	want := "error: " + dir + " holds no operator.yaml, but " + filepath.Join(dir, "operator") + " does: name that\n"
	if code != terminal.ExitFailure || output != want {
		t.Errorf("got %d, %s", code, output)
	}
}

func TestARefusedConnectionAsksForTheKubeconfig(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	output, code := run("plan", "status", "kafka", "--cluster", "cluster1", "--server", "http://"+address, "--cache-dir", t.TempDir())
	if code != terminal.ExitFailure || !strings.Contains(output, "does KUBECONFIG (or --kubeconfig) name the hub") {
		t.Errorf("exit code %d, %s", code, output)
	}
}
