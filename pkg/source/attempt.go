package source

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/bundle"
	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/pkg/chart/registry"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/core/artifact"
	"github.com/tandem-addons/tandem/pkg/core/catalog"
	"github.com/tandem-addons/tandem/pkg/core/content"
	"github.com/tandem-addons/tandem/pkg/core/pack"
	"github.com/tandem-addons/tandem/pkg/core/signature"
	"github.com/tandem-addons/tandem/pkg/core/sourcing"
	"github.com/tandem-addons/tandem/pkg/core/wrap"
	"github.com/tandem-addons/tandem/pkg/oci"
	"github.com/tandem-addons/tandem/pkg/text"
)

// FieldManager is the name under which the controller writes packages and the status of sources.
const FieldManager = "package-controller"

// attempt is one attempt of a source.
type attempt struct {
	source  *kudo.PackageSource
	live    client.Client
	network Network

	guard    *guard
	signers  signers
	registry *oci.Client
	charts   *registry.Client
	// known identifies what the last attempt that succeeded has stored, and stored what this one has.
	known, stored identities
	// version and digest are what was found.
	version, digest string
}

// run pulls, verifies and stores the chosen version. It returns the artifact of the status if that is stored already.
func (a *attempt) run(ctx context.Context) (*kudo.SourceArtifact, error) {
	if err := a.gather(ctx); err != nil {
		return nil, err
	}
	defer a.guard.close()
	var stored *kudo.SourceArtifact
	var err error
	if a.source.Spec.Chart != nil {
		stored, err = a.runChart(ctx)
	} else {
		stored, err = a.runPackage(ctx)
	}
	if err == nil {
		a.stored, err = a.identify(ctx, stored.Versions)
	}
	return stored, a.explain(err)
}

// gather reads the objects that the source names, and prepares the clients.
func (a *attempt) gather(ctx context.Context) error {
	hosts, err := sourcing.HostsOf(&a.source.Spec)
	if err != nil {
		return err
	}
	secret, err := readSecret(ctx, a.live, a.source, hosts)
	if err != nil {
		return err
	}
	if a.signers, err = readSigners(ctx, a.live, a.source); err != nil {
		return err
	}
	if a.guard, err = newGuard(a.network, hosts, secret.authorities); err != nil {
		return sourcing.Failed(kudo.ReasonReferenceNotFound, err)
	}
	a.charts = registry.NewWith(a.guard.withoutRealms(), a.guard, secret.credentials)
	a.registry, err = oci.New(oci.Options{
		PlainHTTP: a.network.PlainHTTP, Timeout: sourcing.Timeout(a.source), Transport: a.guard, Credentials: &secret.credentials,
	})
	return err
}

// explain returns the failure of an attempt, with the version that it is about, and with what fixes it.
func (a *attempt) explain(err error) error {
	if err == nil {
		return nil
	}
	var access *oci.AccessError
	var absent *oci.AbsenceError
	failure := *sourcing.FailureOf(err)
	switch cause := a.guard.cause(); {
	case errors.As(err, &access):
		failure.Err = fmt.Errorf("%s: %s", access.Refusal(), a.loginText())
	case errors.As(err, &absent):
		failure.Err = fmt.Errorf("%s has nothing at this place, or does not show it without credentials: compare spec with the registry, or %s", absent.Host, a.loginText())
	case failure.Reason == kudo.ReasonInvalidPackage && cause != nil: // a child package or a chart of the package could not be read
		failure = *sourcing.FailureOf(cause)
	}
	failure.Version, failure.Digest = a.version, a.digest
	return &failure
}

// loginText says how a source gets credentials.
func (a *attempt) loginText() string {
	if a.source.Spec.PullSecret == nil {
		return "name a Secret with credentials in spec.pullSecret"
	}
	return fmt.Sprintf("check the credentials for this host in Secret %q of spec.pullSecret", a.source.Spec.PullSecret.Name)
}

// runPackage stores a package.
func (a *attempt) runPackage(ctx context.Context) (*kudo.SourceArtifact, error) {
	ref, err := a.choose(ctx)
	if err != nil {
		return nil, err
	}
	if ref, err = a.registry.Resolve(ctx, ref); err != nil {
		return nil, err
	}
	a.digest = ref.Digest
	stored, err := a.findStored(ctx, ref.String())
	if err != nil || stored != nil {
		return stored, err
	}
	loader := a.newLoader(ctx)
	found, err := loader.LoadBundle(ctx, ref.String())
	if err != nil {
		return nil, a.loadFailure(loader, err)
	}
	if err := a.check(found, ref.Tag); err != nil {
		return nil, err
	}
	signatures, signers, err := a.verify(ctx, loader, found)
	if err != nil {
		return nil, err
	}
	if err := a.store(ctx, found, signatures); err != nil {
		return nil, err
	}
	made := a.newArtifact(found, ref.String())
	made.SignedBy = signers
	return made, nil
}

// runChart stores a chart as a package with one Helm task.
func (a *attempt) runChart(ctx context.Context) (*kudo.SourceArtifact, error) {
	ref, options, err := sourcing.ReadChart(a.source.Spec.Chart)
	if err != nil {
		return nil, sourcing.Failed(kudo.ReasonInvalidSource, err)
	}
	fetched, err := a.charts.Fetch(ctx, ref)
	if err != nil {
		return nil, a.fetchFailure(err)
	}
	a.version, a.digest = fetched.Version, fetched.Digest
	reference := fetched.From
	reference, _, _ = strings.Cut(reference, "?") // it may be signed for a moment, and contain a secret
	if !strings.Contains(reference, "@sha256:") {
		reference += "@" + fetched.Digest
	}
	stored, err := a.findStored(ctx, reference)
	if err != nil || stored != nil {
		return stored, err
	}
	found, err := a.wrap(ctx, fetched, options)
	if err != nil {
		return nil, sourcing.Failed(kudo.ReasonInvalidPackage, err)
	}
	if err := a.check(found, ""); err != nil {
		return nil, err
	}
	if err := a.store(ctx, found, bundle.Signatures{}); err != nil {
		return nil, err
	}
	return a.newArtifact(found, reference), nil
}

// fetchFailure returns the failure of a chart that could not be fetched.
func (a *attempt) fetchFailure(err error) error {
	var absent *catalog.AbsenceError
	var altered *registry.DigestError
	switch {
	case a.guard.cause() != nil:
		return err
	case errors.As(err, &absent):
		return sourcing.Failed(kudo.ReasonVersionNotFound, err)
	case errors.As(err, new(*chart.LimitError)), errors.As(err, new(*chart.Error)):
		return sourcing.Failed(kudo.ReasonInvalidPackage, err)
	case errors.As(err, &altered):
		a.version = a.source.Spec.Chart.Version
		return sourcing.Failed(kudo.ReasonVerificationFailed, err)
	}
	return err
}

// wrap returns a package around a chart, like those that 'kubectl addon package from-chart' writes, with the options of the source.
func (a *attempt) wrap(ctx context.Context, fetched *registry.Chart, options sourcing.ChartOptions) (*bundle.Bundle, error) {
	described, err := chart.Describe(ctx, fetched.Archive)
	if errors.As(err, new(*chart.ProcessError)) {
		return nil, sourcing.Failed(kudo.ReasonPullFailed, err)
	}
	if err != nil {
		return nil, err
	}
	if err := pack.CheckName(described.Name); err != nil {
		return nil, fmt.Errorf("the name of the chart: %w", err)
	}
	described.Source = wrap.Source{Repository: fetched.Repository, From: fetched.From, Digest: fetched.Digest}
	packed := fmt.Sprintf("%s-%s.tgz", described.Name, described.Version)
	files, err := wrap.FilesWith(described.Name, packed, described, options.Choices, options.Values)
	if err != nil {
		return nil, err
	}
	files[packed] = string(fetched.Archive)
	return a.newLoader(ctx).LoadFiles(ctx, fetched.From, files)
}

// choose returns the reference of the version, tag or digest that the source asks for.
func (a *attempt) choose(ctx context.Context) (artifact.Reference, error) {
	wanted := a.source.Spec.Package
	ref, err := artifact.Parse(wanted.Reference)
	if err != nil {
		return ref, sourcing.Failed(kudo.ReasonInvalidSource, err)
	}
	ref.Tag, ref.Digest = wanted.Tag, wanted.Digest
	if a.version = wanted.Tag; wanted.Version == "" {
		return ref, nil
	}
	versions, err := a.registry.Versions(ctx, ref)
	if err != nil {
		return ref, err
	}
	if a.version, err = sourcing.Choose(wanted.Version, versions); err != nil {
		return ref, err
	}
	ref.Tag = catalog.TagOf(a.version)
	return ref, nil
}

// findStored returns the artifact of the status if the last attempt has stored it from this reference under the same spec, signed by one of the current keys, and
// if the hub still has its OperatorVersions; nil if it has to be pulled, as at the first attempt after a start.
func (a *attempt) findStored(ctx context.Context, reference string) (*kudo.SourceArtifact, error) {
	stored := a.source.Status.Artifact
	ready := meta.FindStatusCondition(a.source.Status.Conditions, kudo.ConditionReady)
	if stored == nil || stored.Reference != reference || ready == nil || ready.Reason != kudo.ReasonStored || ready.ObservedGeneration != a.source.Generation {
		return nil, nil
	}
	isCurrent := func(id string) bool {
		return slices.ContainsFunc(a.signers.each, func(s signer) bool { return s.id == id })
	}
	if a.source.Spec.Verify != nil && !slices.ContainsFunc(stored.SignedBy, isCurrent) {
		return nil, nil
	}
	var err error
	if a.stored, err = a.identify(ctx, stored.Versions); err != nil || len(a.stored) == 0 || !maps.Equal(a.stored, a.known) {
		return nil, err
	}
	return stored, nil
}

// identities identify OperatorVersions on the hub by their names: each with its uid, and with the signatures that it has.
type identities map[string]string

// identify returns the identities of OperatorVersions on the hub; none if one does not exist.
func (a *attempt) identify(ctx context.Context, names []string) (identities, error) {
	found := identities{}
	for _, name := range names {
		version := &metav1.PartialObjectMetadata{}
		version.SetGroupVersionKind(kudo.GroupVersion.WithKind("OperatorVersion"))
		err := a.live.Get(ctx, client.ObjectKey{Namespace: a.source.Namespace, Name: name}, version)
		switch {
		case apierrors.IsNotFound(err):
			return nil, nil
		case err != nil:
			return nil, sourcing.Failed(kudo.ReasonStoreFailed, fmt.Errorf("reading OperatorVersion %q: %w", name, err))
		}
		found[name] = string(version.UID) + " " + content.DigestOf([]byte(version.Annotations[kudo.AnnotationSignatures]))
	}
	return found, nil
}

// roomOfAttempt limits what the tarballs of an attempt contain, in bytes, and its charts: an attempt needs about six times as much memory.
const roomOfAttempt = 64 << 20

// newLoader returns a loader that reaches only what the guard allows. Names of child operators are looked up on the hub.
func (a *attempt) newLoader(ctx context.Context) *bundle.Loader {
	return &bundle.Loader{
		Versions:     func() ([]kudo.OperatorVersion, error) { return read.StoredVersions(ctx, a.live, a.source.Namespace) },
		Registry:     func() (*oci.Client, error) { return a.registry, nil },
		Repositories: func() (*registry.Client, error) { return a.charts, nil },
		Transport:    a.guard.withoutRealms(),
		Room:         roomOfAttempt,
	}
}

// hub returns the place where packages are stored.
func (a *attempt) hub() *bundle.Hub {
	return &bundle.Hub{
		Client: a.live, Namespace: a.source.Namespace, FieldManager: FieldManager, KeepsEqual: true, Report: func(_, _, _ string) error { return nil },
	}
}

// loadFailure returns the failure of a package that could not be loaded: of its content if it was pulled, else of its registry.
func (a *attempt) loadFailure(loader *bundle.Loader, err error) error {
	if len(loader.Pulled) == 0 || a.guard.cause() != nil {
		return err
	}
	return sourcing.Failed(kudo.ReasonInvalidPackage, err)
}

// maxProblems limits the problems of a package in a message.
const maxProblems = 3

// check returns an error for a package with errors, or of another version than the tag that was chosen by it.
func (a *attempt) check(found *bundle.Bundle, tag string) error {
	if problems := found.Errors(); len(problems) > 0 {
		return sourcing.Failed(kudo.ReasonInvalidPackage, fmt.Errorf("it has %s: %s", text.Plural(len(problems), "error"), text.List(problems, maxProblems)))
	}
	spec := found.Root().Pkg.Version
	isChosen := a.source.Spec.Package != nil && a.source.Spec.Package.Version != ""
	if own := artifact.TagOf(spec.AppVersion, spec.Version); isChosen && tag != own && tag != artifact.TagOf("", spec.Version) {
		return sourcing.Failed(kudo.ReasonInvalidPackage, fmt.Errorf("tag %s names version %s of the package, whose tag is %s: move the tag, or name one in spec.package.tag",
			tag, text.Quote(spec.Version), own))
	}
	return nil
}

// verify returns the signatures to store, and the IDs of those who have signed the package. If signatures are required, only those by them are stored.
func (a *attempt) verify(ctx context.Context, loader *bundle.Loader, pulled *bundle.Bundle) (bundle.Signatures, []string, error) {
	all, err := loader.Signatures(ctx)
	if err != nil || a.source.Spec.Verify == nil {
		return bundle.Signatures{Found: all}, nil, err
	}
	digests, err := pulled.ContentDigests()
	if err == nil {
		_, err = signature.VerifyArtifact(a.digest, digests, all, a.signers.Trust)
	}
	if err != nil {
		if problems := a.signers.problems; len(problems) > 0 {
			err = fmt.Errorf("%w; in the ConfigMap of spec.verify.keys: %s", err, text.List(problems, maxProblems))
		}
		return bundle.Signatures{}, nil, sourcing.Failed(kudo.ReasonVerificationFailed, err)
	}
	var found []string
	for _, s := range a.signers.each {
		if _, err := signature.VerifyArtifact(a.digest, digests, all, s.Trust); err == nil && len(found) < maxSigners {
			found = append(found, s.id)
		}
	}
	slices.Sort(found)
	return bundle.Signatures{Found: signature.By(all, a.signers.Trust), Required: true}, slices.Compact(found), nil
}

// maxSigners limits the signers in the status.
const maxSigners = 16

// store stores a package on the hub.
func (a *attempt) store(ctx context.Context, found *bundle.Bundle, signatures bundle.Signatures) error {
	err := a.hub().Push(ctx, found, signatures)
	var conflict *bundle.ConflictError
	if errors.As(err, &conflict) {
		if a.source.Spec.Chart != nil {
			err = fmt.Errorf("%s: an earlier spec, another source or a push has stored it; what this source contains takes effect with a higher version of the chart, "+
				"or if you delete the OperatorVersion while nothing uses it", conflict.Text())
		}
		return sourcing.Failed(kudo.ReasonVersionConflict, err)
	}
	return sourcing.Failed(kudo.ReasonStoreFailed, err)
}

// newArtifact describes a package that is stored.
func (a *attempt) newArtifact(found *bundle.Bundle, reference string) *kudo.SourceArtifact {
	made := &kudo.SourceArtifact{Reference: reference, Version: a.version, OperatorVersion: bundle.VersionName(found.Root().Pkg)}
	for _, key := range found.VersionKeys(a.source.Namespace) {
		made.Versions = append(made.Versions, key.Name)
	}
	return made
}
