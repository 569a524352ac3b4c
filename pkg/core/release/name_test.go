package release

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestFindCollision(t *testing.T) {
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	own := Claim{Instance: "b", Task: "web", Name: "shop", Created: at(2)}
	for name, test := range map[string]struct {
		own   Claim
		other Claim
		want  string
	}{
		"another name": {own, Claim{Instance: "a", Task: "web", Name: "other", Recorded: true}, ""},
		"itself":       {own, own, ""},
		"another task of the Instance": {own, Claim{Instance: "b", Task: "db", Name: "shop", Created: at(2)},
			`the release name "shop" is in use in namespace "apps", by task "db" of the same Instance: disable one of them, or set another releaseName in task "web" of the package`},
		"an Instance that uses it": {own, Claim{Instance: "c", Task: "web", Name: "shop", Recorded: true, Created: at(3)},
			`by task "web" of Instance "c": remove one of the Instances, install it in another namespace, or set another releaseName in task "web"`},
		"an older Instance that is going to":            {own, Claim{Instance: "c", Task: "web", Name: "shop", Created: at(1)}, `Instance "c"`},
		"a younger one that is going to":                {own, Claim{Instance: "a", Task: "web", Name: "shop", Created: at(3)}, ""},
		"one of the same second, by name":               {own, Claim{Instance: "a", Task: "web", Name: "shop", Created: at(2)}, `Instance "a"`},
		"one of the same second with a later name":      {own, Claim{Instance: "c", Task: "web", Name: "shop", Created: at(2)}, ""},
		"a task that uses it already is never affected": {Claim{Instance: "b", Task: "web", Name: "shop", Recorded: true}, Claim{Instance: "c", Task: "web", Name: "shop", Recorded: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			expectCollision(t, FindCollision(test.own, "apps", []Claim{test.other}), test.want)
		})
	}
}

func TestFindHelmRelease(t *testing.T) {
	record := func(revision, status string) metav1.PartialObjectMetadata {
		labels := HelmLabels("shop")
		labels["version"], labels["status"] = revision, status
		return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "sh.helm.release.v1.shop.v" + revision, Labels: labels}}
	}
	for name, test := range map[string]struct {
		records []metav1.PartialObjectMetadata
		want    string
	}{
		"none": {},
		"a release": {[]metav1.PartialObjectMetadata{record("9", "superseded"), record("10", "deployed"), record("2", "superseded")},
			`by a release of Helm (Secret sh.helm.release.v1.shop.v10): uninstall it with 'helm uninstall shop --namespace apps', or set another releaseName`},
		"one that failed":            {[]metav1.PartialObjectMetadata{record("1", "failed")}, "v1)"},
		"one that was uninstalled":   {[]metav1.PartialObjectMetadata{record("1", "superseded"), record("2", "uninstalled")}, ""},
		"one without a known number": {[]metav1.PartialObjectMetadata{record("x", "deployed")}, "vx)"},
	} {
		t.Run(name, func(t *testing.T) {
			expectCollision(t, FindHelmRelease(Claim{Instance: "b", Task: "web", Name: "shop"}, "apps", "Secret", test.records), test.want)
		})
	}
}

func expectCollision(t *testing.T, err error, want string) {
	t.Helper()
	if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}
