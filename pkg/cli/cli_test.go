package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/tandem-addons/tandem/pkg/bundle/bundletest"
	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/pkg/cli/clitest"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
)

// TestMain makes the test's program also the one that processes charts.
func TestMain(m *testing.M) {
	chart.ServeChild()
	os.Exit(m.Run())
}

// run executes the plugin and returns its output, including the error, and its exit code.
func run(args ...string) (output string, code int) {
	var out bytes.Buffer
	cmd := New(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &out}, "v0.0.0")
	cmd.SetArgs(args)
	err := cmd.Execute()
	if err != nil {
		fmt.Fprintf(terminal.Guard(&out), "error: %v\n", err)
	}
	return out.String(), ExitCode(err)
}

// Texts of a package that anyone wrote cannot control the terminal, on whatever path they are printed.
func TestTextsOfPackagesCannotControlTheTerminal(t *testing.T) {
	dir := t.TempDir()
	bundletest.WritePackage(t, dir, "1.0.0")
	const evil = `"\u009b2J\x1b[2J\u202e\a"`
	operator := "apiVersion: kudo.dev/v1beta1\nname: zz\noperatorVersion: 1.0.0\nurl: " + evil + "\nmaintainers: [{name: " + evil + "}]\n" +
		"tasks: [{name: a, kind: Dummy}]\nplans: {deploy: {phases: [{name: a, steps: [{name: a, tasks: [a]}]}]}}\n"
	for file, text := range map[string]string{
		"operator.yaml": operator,
		"params.yaml":   "apiVersion: kudo.dev/v1beta1\nparameters: [{name: A, default: " + evil + ", description: " + evil + ", hint: " + evil + "}]\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	broken := filepath.Join(t.TempDir(), "broken")
	bundletest.WritePackage(t, broken, "1.0.0", "package: "+evil)
	for _, args := range [][]string{
		{"package", "show", dir}, {"package", "show", dir, "-o", "wide"}, {"package", "verify", broken}, {"package", "tree", broken},
		{"package", "verify", "\u009b2J"}, {"package", "\u009b2J"}, {"\u009b2J", "--\u009b2J"},
	} {
		if output, _ := run(args...); strings.ContainsAny(output, "\u009b\x1b\u202e\a") || !strings.Contains(output, `2J`) {
			t.Errorf("%q: got %q", args, output)
		}
	}
}

func TestCommands(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		code int
	}{
		"verify-valid":           {[]string{"package", "verify", "testdata/valid"}, ExitOK},
		"verify-broken":          {[]string{"package", "verify", "testdata/broken"}, ExitFailure},
		"verify-valid-json":      {[]string{"package", "verify", "testdata/valid", "-o", "json"}, ExitOK},
		"verify-broken-json":     {[]string{"package", "verify", "testdata/broken", "-o", "json"}, ExitFailure},
		"verify-family":          {[]string{"package", "verify", "testdata/family"}, ExitOK},
		"verify-family-json":     {[]string{"package", "verify", "testdata/family", "-o", "json"}, ExitOK},
		"verify-broken-yaml":     {[]string{"package", "verify", "testdata/broken", "-o", "yaml"}, ExitFailure},
		"verify-broken-jsonpath": {[]string{"package", "verify", "testdata/broken", "-o", "jsonpath={.problems[*].line}"}, ExitFailure},
		"verify-cycle":           {[]string{"package", "verify", "testdata/cycle/aa"}, ExitFailure},
		"verify-cycle-json":      {[]string{"package", "verify", "testdata/cycle/aa", "-o", "json"}, ExitFailure},
		"package-tree":           {[]string{"package", "tree", "testdata/family"}, ExitOK},
		"package-tree-json":      {[]string{"package", "tree", "testdata/family", "-o", "json"}, ExitOK},
		"package-tree-name":      {[]string{"package", "tree", "testdata/family", "-o", "name"}, ExitOK},
		"package-tree-cycle":     {[]string{"package", "tree", "testdata/cycle/aa"}, ExitFailure},
		"push-cycle":             {[]string{"package", "push", "testdata/cycle/aa"}, ExitFailure},
		"verify-output":          {[]string{"package", "verify", "testdata/valid", "-o", "name"}, ExitUsage},
		"verify-file":            {[]string{"package", "verify", "testdata/valid/operator.yaml"}, ExitFailure},
		"verify-missing":         {[]string{"package", "verify", "testdata/none"}, ExitFailure},
		"rights":                 {[]string{"package", "rights", "testdata/valid"}, ExitOK},
		"rights-json":            {[]string{"package", "rights", "testdata/family", "-o", "json"}, ExitOK},
		"rights-powers":          {[]string{"package", "rights", "testdata/powerful"}, ExitOK},
		"rights-powers-json":     {[]string{"package", "rights", "testdata/powerful", "-o", "json"}, ExitOK},
		"rights-broken":          {[]string{"package", "rights", "testdata/broken"}, ExitFailure},
		"verify-no-argument":     {[]string{"package", "verify"}, ExitUsage},
		"push-broken":            {[]string{"package", "push", "testdata/broken"}, ExitFailure},
		"status-no-cluster":      {[]string{"plan", "status", "kafka"}, ExitUsage},
		"status-namespace":       {[]string{"plan", "status", "kafka", "--cluster", "cluster1", "-n", "cluster1"}, ExitUsage},
		"tree-no-cluster":        {[]string{"tree"}, ExitUsage},
		"tree-two-add-ons":       {[]string{"tree", "kafka", "shop", "--cluster", "cluster1"}, ExitUsage},
		"tree-output":            {[]string{"tree", "--cluster", "cluster1", "-o", "jsonpath"}, ExitUsage},
		"why-no-argument":        {[]string{"why", "--cluster", "cluster1"}, ExitUsage},
		"why-no-cluster":         {[]string{"why", "kafka"}, ExitUsage},
		"why-namespace":          {[]string{"why", "kafka", "--cluster", "cluster1", "-n", "cluster1"}, ExitUsage},
		"dependents-no-argument": {[]string{"dependents"}, ExitUsage},
		"dependents-output":      {[]string{"dependents", "kafka", "-o", "xml"}, ExitUsage},
		"dependents-namespace":   {[]string{"dependents", "kafka", "-n", "cluster1"}, ExitUsage},
		"what-if-no-cluster":     {[]string{"what-if", "disable", "kafka"}, ExitUsage},
		"what-if-no-argument":    {[]string{"what-if", "disable", "-A"}, ExitUsage},
		"what-if-namespace":      {[]string{"what-if", "disable", "kafka", "-A", "-n", "cluster1"}, ExitUsage},

		"what-if-kubernetes-version":    {[]string{"what-if", "kubernetes", "latest", "-A"}, ExitUsage},
		"what-if-kubernetes-no-cluster": {[]string{"what-if", "kubernetes", "1.36.0"}, ExitUsage},
		"what-if-upgrade-no-version":    {[]string{"what-if", "upgrade", "kafka", "-A"}, ExitUsage},
		"what-if-upgrade-namespace":     {[]string{"what-if", "upgrade", "kafka", "1.0.0", "-A", "-n", "cluster1"}, ExitUsage},
		"images-missing":                {[]string{"package", "images", "testdata/none"}, ExitFailure},
		"images-no-argument":            {[]string{"package", "images"}, ExitUsage},
		"images-broken":                 {[]string{"package", "images", "testdata/broken"}, ExitFailure},
		"apply-no-file":                 {[]string{"apply"}, ExitUsage},
		"apply-argument":                {[]string{"apply", "stack.yaml"}, ExitUsage},
		"apply-missing":                 {[]string{"apply", "-f", "testdata/none.yaml"}, ExitFailure},
		"apply-output":                  {[]string{"apply", "-f", "testdata/none.yaml", "-o", "yaml", "--prune"}, ExitUsage},
		"apply-package":                 {[]string{"apply", "-f", "testdata/valid/operator.yaml"}, ExitFailure},
		"create-no-package":             {[]string{"create", "kafka"}, ExitUsage},
		"create-folder":                 {[]string{"create", "kafka", "--package", "./kafka"}, ExitUsage},
		"create-name":                   {[]string{"create", "Kafka", "--package", "kafka"}, ExitUsage},
		"create-message":                {[]string{"create", "kafka", "--package", "kafka", "--requires", "a,b", "--message", "c=Text"}, ExitUsage},
		"ui-namespace":                  {[]string{"ui", "-n", "cluster1"}, ExitUsage},
		"ui-port":                       {[]string{"ui", "--port", "70000"}, ExitUsage},
		"ui-no-name":                    {[]string{"ui", "--cluster", "cluster1,"}, ExitUsage},
		"uninstall-no-cluster":          {[]string{"uninstall", "kafka"}, ExitUsage},
		"uninstall-timeout":             {[]string{"uninstall", "kafka", "--cluster", "cluster1", "--timeout", "-1s"}, ExitUsage},
		"uninstall-namespace":           {[]string{"uninstall", "kafka", "--cluster", "cluster1", "-n", "cluster1"}, ExitUsage},
		"install-nowhere":               {[]string{"install", "kafka"}, ExitUsage},
		"install-no-argument":           {[]string{"install", "--cluster", "cluster1"}, ExitUsage},
		"install-folder":                {[]string{"install", "./kafka", "--cluster", "cluster1"}, ExitUsage},
		"install-output":                {[]string{"install", "kafka", "--cluster", "cluster1", "-o", "json"}, ExitUsage},
		"install-placement":             {[]string{"install", "kafka", "--placement", "a/b/c"}, ExitUsage},
		"install-file":                  {[]string{"install", "kafka", "--cluster", "cluster1", "-P", "testdata/none.yaml"}, ExitFailure},
		"update-no-parameter":           {[]string{"update", "kafka", "--cluster", "cluster1"}, ExitUsage},
		"update-namespace":              {[]string{"update", "kafka", "--cluster", "cluster1", "-n", "data", "-p", "A=1"}, ExitUsage},
		"upgrade-two-versions":          {[]string{"upgrade", "kafka", "--cluster", "cluster1", "--version", "1.0.0", "--operator-version", "1.0.0"}, ExitUsage},
		"show":                          {[]string{"package", "show", "testdata/versions/old"}, ExitOK},
		"show-wide":                     {[]string{"package", "show", "testdata/versions/new", "-o", "wide"}, ExitOK},
		"show-yaml":                     {[]string{"package", "show", "testdata/family", "-o", "yaml"}, ExitOK},
		"show-health":                   {[]string{"package", "show", "../../examples/health"}, ExitOK},
		"show-name":                     {[]string{"package", "show", "testdata/family", "-o", "name"}, ExitOK},
		"show-parameters":               {[]string{"package", "show", "parameters", "testdata/versions/old"}, ExitOK},
		"show-plans":                    {[]string{"package", "show", "plans", "testdata/versions/old"}, ExitOK},
		"show-tasks":                    {[]string{"package", "show", "tasks", "testdata/family"}, ExitOK},
		"show-permissions":              {[]string{"package", "show", "permissions", "../../examples/packages/redis"}, ExitOK},
		"show-permissions-none":         {[]string{"package", "show", "permissions", "testdata/family"}, ExitOK},
		"show-permissions-json":         {[]string{"package", "show", "permissions", "../../examples/packages/redis", "-o", "json"}, ExitOK},
		"show-sensitive":                {[]string{"package", "show", "parameters", "../../examples/packages/redis"}, ExitOK},
		"show-dependencies":             {[]string{"package", "show", "dependencies", "testdata/family"}, ExitOK},
		"show-plans-json":               {[]string{"package", "show", "plans", "testdata/family", "-o", "json"}, ExitOK},
		"show-broken":                   {[]string{"package", "show", "testdata/broken"}, ExitFailure},
		"show-no-argument":              {[]string{"package", "show"}, ExitUsage},
		"show-unknown-flag":             {[]string{"package", "show", "kafka", "--frobnicate"}, ExitUsage},
		"diff":                          {[]string{"package", "diff", "testdata/versions/old", "testdata/versions/new"}, ExitOK},
		"diff-wide":                     {[]string{"package", "diff", "testdata/versions/old", "testdata/versions/new", "-o", "wide"}, ExitOK},
		"diff-json":                     {[]string{"package", "diff", "testdata/versions/new", "testdata/versions/old", "-o", "json"}, ExitOK},
		"diff-same":                     {[]string{"package", "diff", "testdata/valid", "testdata/valid"}, ExitOK},
		"diff-operators":                {[]string{"package", "diff", "testdata/family/packages/cache", "testdata/family/packages/database"}, ExitOK},
		"diff-no-argument":              {[]string{"package", "diff", "testdata/valid"}, ExitUsage},
		"list-argument":                 {[]string{"package", "list", "kafka"}, ExitUsage},
		"new-no-argument":               {[]string{"package", "new"}, ExitUsage},
		"new-bad-name":                  {[]string{"package", "new", "My_Shop"}, ExitFailure},
		"from-chart-missing":            {[]string{"package", "from-chart", "testdata/none"}, ExitFailure},
		"from-chart-bad-param":          {[]string{"package", "from-chart", "testdata/none", "--param", "image..tag"}, ExitFailure},
		"from-release-argument":         {[]string{"package", "from-release"}, ExitUsage},
		"from-release-no-chart":         {[]string{"package", "from-release", "web", "--repo", "https://charts.example.com"}, ExitUsage},
		"from-release-param":            {[]string{"package", "from-release", "web", "--sensitive", "auth..password"}, ExitFailure},
		"from-release-revision":         {[]string{"package", "from-release", "web", "--revision", "-1"}, ExitUsage},
		"update-chart-missing":          {[]string{"package", "update-chart", "testdata/none", "--version", "1.0.0"}, ExitFailure},
		"update-chart-no-chart":         {[]string{"package", "update-chart", "testdata/valid"}, ExitUsage},
		"update-chart-no-task":          {[]string{"package", "update-chart", "testdata/valid", "--version", "1.0.0"}, ExitFailure},
		"new-not-empty":                 {[]string{"package", "new", "shop", "testdata/valid"}, ExitFailure},
		"pack-broken":                   {[]string{"package", "pack", "testdata/broken"}, ExitFailure},
		"pack-outside":                  {[]string{"package", "pack", "testdata/cycle/aa"}, ExitFailure},
		"pack-missing":                  {[]string{"package", "pack", "testdata/none"}, ExitFailure},
		"index-no-argument":             {[]string{"package", "index"}, ExitUsage},
		"index-nothing":                 {[]string{"package", "index", "testdata/valid"}, ExitFailure},
		"index-missing":                 {[]string{"package", "index", "testdata/none"}, ExitFailure},
		"index-url":                     {[]string{"package", "index", "testdata/valid", "--url", "packages"}, ExitUsage},
		"plan-run-no-plan":              {[]string{"plan", "run", "kafka", "--cluster", "cluster1"}, ExitUsage},
		"plan-run-no-cluster":           {[]string{"plan", "run", "kafka", "deploy"}, ExitUsage},
		"plan-resume-no-cluster":        {[]string{"plan", "resume", "kafka"}, ExitUsage},
		"plan-run-parameter":            {[]string{"plan", "run", "kafka", "deploy", "--cluster", "cluster1", "-p", "SIZE"}, ExitUsage},
		"plan-resume-plan":              {[]string{"plan", "resume", "kafka", "deploy", "--cluster", "cluster1"}, ExitUsage},
		"plan-wait-timeout":             {[]string{"plan", "wait", "kafka", "--cluster", "cluster1", "--timeout", "-1s"}, ExitUsage},
		"suspend-no-cluster":            {[]string{"suspend", "kafka"}, ExitUsage},
		"suspend-nothing":               {[]string{"suspend", "--cluster", "cluster1"}, ExitUsage},
		"suspend-all-name":              {[]string{"suspend", "kafka", "--all", "--cluster", "cluster1"}, ExitUsage},
		"suspend-all-no-cluster":        {[]string{"suspend", "--all"}, ExitUsage},
		"suspend-everywhere-cluster":    {[]string{"suspend", "kafka", "--everywhere", "--selector", "region=eu"}, ExitUsage},
		"suspend-everywhere-namespace":  {[]string{"suspend", "kafka", "--everywhere", "-n", "data"}, ExitUsage},
		"suspend-all-namespace":         {[]string{"suspend", "--all", "--cluster", "cluster1", "-n", "data"}, ExitUsage},
		"suspend-reason":                {[]string{"suspend", "kafka", "--cluster", "cluster1", "--reason", "storage"}, ExitUsage},
		"suspend-reason-long":           {[]string{"suspend", "--all", "--everywhere", "--reason", strings.Repeat("é", 201)}, ExitUsage},
		"suspend-two":                   {[]string{"suspend", "kafka", "zookeeper", "--everywhere"}, ExitUsage},
		"resume-reason":                 {[]string{"resume", "kafka", "--everywhere", "--reason", "storage"}, ExitUsage},
		"resume-no-cluster":             {[]string{"resume", "kafka"}, ExitUsage},
		"plan-cancel-no-cluster":        {[]string{"plan", "cancel", "kafka"}, ExitUsage},
		"plan-history-two":              {[]string{"plan", "history", "kafka", "--cluster", "cluster1,cluster2"}, ExitUsage},
		"plan-history-output":           {[]string{"plan", "history", "kafka", "--cluster", "cluster1", "-o", "name"}, ExitUsage},
		"status-watch-output":           {[]string{"plan", "status", "kafka", "--cluster", "cluster1", "--watch", "-o", "json"}, ExitUsage},
		"enable-nowhere":                {[]string{"enable", "kafka"}, ExitUsage},
		"enable-twice":                  {[]string{"enable", "kafka", "--cluster", "cluster1", "--all-clusters"}, ExitUsage},
		"enable-selector":               {[]string{"enable", "kafka", "--selector", "a in b"}, ExitUsage},
		"enable-empty-cluster":          {[]string{"enable", "kafka", "--cluster", "cluster1,,cluster2"}, ExitUsage},
		"disable-nowhere":               {[]string{"disable", "kafka"}, ExitUsage},
		"disable-namespace":             {[]string{"disable", "kafka", "--cluster", "cluster1", "-n", "data"}, ExitUsage},
		"enable-namespace":              {[]string{"enable", "kafka", "--cluster", "cluster1", "-n", "My_Data"}, ExitUsage},
		"install-namespace":             {[]string{"install", "kafka", "--cluster", "cluster1", "-n", "My_Data"}, ExitUsage},
		"get-namespace":                 {[]string{"get", "-n", "cluster1"}, ExitUsage},
		"get-two-add-ons":               {[]string{"get", "kafka", "shop"}, ExitUsage},
		"get-watch-output":              {[]string{"get", "--watch", "-o", "json"}, ExitUsage},
		"get-sort-by":                   {[]string{"get", "--sort-by", "{.state"}, ExitUsage},
		"get-columns-path":              {[]string{"get", "-o", "custom-columns=NAME"}, ExitUsage},
		"fleet-watch-output":            {[]string{"fleet", "-w", "-o", "yaml"}, ExitUsage},
		"fleet-argument":                {[]string{"fleet", "kafka"}, ExitUsage},
		"fleet-output":                  {[]string{"fleet", "-o", "name"}, ExitUsage},
		"join-no-cluster":               {[]string{"join", "cluster1"}, ExitUsage},
		"join-name":                     {[]string{"join", "Cluster_1", "--cluster-context", "cluster1"}, ExitUsage},
		"diagnose-two-clusters":         {[]string{"diagnose", "--cluster", "cluster1,cluster2", "--cluster-context", "cluster1"}, ExitUsage},
		"diagnose-timeout":              {[]string{"diagnose", "--timeout", "0s"}, ExitUsage},
		"check-argument":                {[]string{"check", "hub"}, ExitUsage},
		"version-argument":              {[]string{"version", "v1"}, ExitUsage},
		"version-twice":                 {[]string{"version", "--cluster", "cluster1", "--all-clusters"}, ExitUsage},
		"version-client-json":           {[]string{"version", "--client", "-o", "json"}, ExitOK},
		"show-plans-broken":             {[]string{"package", "show", "plans", "testdata/broken"}, ExitFailure},
		"show-tasks-no-argument":        {[]string{"package", "show", "tasks"}, ExitUsage},
		"show-permissions-two":          {[]string{"package", "show", "permissions", "testdata/valid", "testdata/family"}, ExitUsage},
		"show-parameters-output":        {[]string{"package", "show", "parameters", "testdata/valid", "-o", "xml"}, ExitUsage},
		"show-dependencies-two":         {[]string{"package", "show", "dependencies", "testdata/valid", "testdata/family"}, ExitUsage},
		"set-version-nothing":           {[]string{"set-version", "kafka"}, ExitUsage},
		"set-version-namespace":         {[]string{"set-version", "kafka", "1.0.0", "-n", "data"}, ExitUsage},
		"set-version-output":            {[]string{"set-version", "kafka", "1.0.0", "-o", "yaml"}, ExitUsage},
		"unknown-other-verb":            {[]string{"list"}, ExitUsage},
		"unknown-below":                 {[]string{"push", "kafka"}, ExitUsage},
		"unknown-undo":                  {[]string{"undo", "kafka"}, ExitUsage},
		"history-no-argument":           {[]string{"history", "--cluster", "cluster1"}, ExitUsage},
		"history-namespace":             {[]string{"history", "kafka", "-n", "cluster1"}, ExitUsage},
		"values-no-cluster":             {[]string{"values", "kafka"}, ExitUsage},
		"values-output":                 {[]string{"values", "kafka", "--cluster", "cluster1", "-o", "name"}, ExitUsage},
		"events-two-ways":               {[]string{"events", "kafka", "--cluster", "cluster1", "-A"}, ExitUsage},
		"drift-two-ways":                {[]string{"drift", "kafka", "--cluster", "cluster1", "-A"}, ExitUsage},
		"drift-namespace":               {[]string{"drift", "-n", "cluster1"}, ExitUsage},
		"drift-output":                  {[]string{"drift", "-o", "name"}, ExitUsage},
		"logs-no-context":               {[]string{"logs", "kafka", "--cluster", "hubb", "--kubeconfig", "testdata/insecure"}, ExitUsage},
		"logs-containers":               {[]string{"logs", "kafka", "--cluster", "cluster1", "--cluster-context", "c", "-c", "main", "--all-containers"}, ExitUsage},
		"logs-since":                    {[]string{"logs", "kafka", "--cluster", "cluster1", "--cluster-context", "c", "--since", "5m", "--since-time", "2026-01-02T03:04:05Z"}, ExitUsage},
		"logs-since-time":               {[]string{"logs", "kafka", "--cluster", "cluster1", "--cluster-context", "c", "--since-time", "yesterday"}, ExitUsage},
		"logs-tail":                     {[]string{"logs", "kafka", "--cluster", "cluster1", "--cluster-context", "c", "--tail=-2"}, ExitUsage},
		"logs-two-clusters":             {[]string{"logs", "kafka", "--cluster", "cluster1,cluster2", "--cluster-context", "c"}, ExitUsage},
		"unknown-tail":                  {[]string{"tail", "kafka"}, ExitUsage},
		"rollback-nowhere":              {[]string{"rollback", "kafka"}, ExitUsage},
		"rollback-two-clusters":         {[]string{"rollback", "kafka", "--cluster", "cluster1,cluster2", "--to", "3"}, ExitUsage},
		"rollback-to-zero":              {[]string{"rollback", "kafka", "--cluster", "cluster1", "--to", "0"}, ExitUsage},
		"help":                          {[]string{"--help"}, ExitOK},
		"help-get":                      {[]string{"get", "--help"}, ExitOK},
		"help-plan":                     {[]string{"plan"}, ExitOK},
		"options-argument":              {[]string{"options", "all"}, ExitUsage},
		"options":                       {[]string{"options"}, ExitOK},
		"plan-run-failed-twice":         {[]string{"plan", "run", "kafka", "deploy", "--failed", "-A", "-l", "a=b"}, ExitUsage},
		"status-watch-failed":           {[]string{"plan", "status", "kafka", "--cluster", "a,b", "--watch", "--failed"}, ExitUsage},
		"unknown-command":               {[]string{"package", "frobnicate"}, ExitUsage},
		"unknown-flag":                  {[]string{"plan", "status", "--frobnicate"}, ExitUsage},
		"misspelled-flag":               {[]string{"enable", "kafka", "--cluser", "cluster1"}, ExitUsage},
		"uninstall-other-flag":          {[]string{"uninstall", "kafka", "--cluster", "cluster1", "--force"}, ExitUsage},
		"set-version-other-flag":        {[]string{"set-version", "kafka", "--version", "1.1.0"}, ExitUsage},
		"misspelled-command":            {[]string{"tre", "--cluster", "cluster1"}, ExitUsage},
		"unknown-flag-of-all":           {[]string{"--frobnicate"}, ExitUsage},
		"version":                       {[]string{"--version"}, ExitOK},
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
	want := "error: " + dir + " contains no operator.yaml, but " + filepath.Join(dir, "operator") + " does: use that folder\n"
	if code != ExitFailure || output != want {
		t.Errorf("got %d, %s", code, output)
	}
}

func TestARefusedConnectionAsksForTheKubeconfig(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	output, code := run("plan", "status", "kafka", "--cluster", "cluster1", "--server", "http://127.0.0.1:1", "--cache-dir", t.TempDir())
	if code != ExitFailure || !strings.Contains(output, "check that KUBECONFIG or --kubeconfig names the hub") {
		t.Errorf("exit code %d, %s", code, output)
	}
}

func TestAnInterruptionIsNoError(t *testing.T) {
	for want, err := range map[string]error{
		"error: no": errors.New("no"), "it continues": errors.Join(nil, errors.Join(terminal.Interruptedf("it continues"))),
		"error: no\nit continues": errors.Join(errors.New("no"), terminal.Interruptedf("it continues")),
	} {
		if got := ErrorText(err); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestExitCodes(t *testing.T) {
	for want, err := range map[int]error{
		ExitOK:      nil,
		ExitFailure: errors.New("no"),
		ExitUsage:   fmt.Errorf("more: %w", terminal.Usagef(&cobra.Command{}, "no")),
		ExitTimeout: fmt.Errorf("more: %w", terminal.Timeoutf("%s is late", "it")),

		ExitInterrupted: errors.Join(terminal.Interruptedf("%s continues", "it")),
	} {
		if got := ExitCode(err); got != want {
			t.Errorf("%v: exit code %d, want %d", err, got, want)
		}
	}
}
