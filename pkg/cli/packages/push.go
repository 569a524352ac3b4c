package packages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/registries"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/core/artifact"
	"github.com/tandem-addons/tandem/pkg/core/pack"
	"github.com/tandem-addons/tandem/pkg/core/signature"
	"github.com/tandem-addons/tandem/pkg/core/tree"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
)

// PushOptions holds the arguments and flags of the command.
type PushOptions struct {
	*hubclient.Factory
	name string
	// to is where the package is pushed; nil for the hub.
	to *artifact.Reference
	// overwrite moves a tag that names something else.
	overwrite bool
	// signKey is a file with the private key that signs the package, keys are files with public keys of which one must have signed it.
	signKey string
	keys    []string
	loader
}

// NewCmdPush returns the command. If runF is set, it replaces runPush.
func NewCmdPush(f *hubclient.Factory, runF func(context.Context, *PushOptions) error) *cobra.Command {
	o := &PushOptions{Factory: f}
	if runF == nil {
		runF = runPush
	}
	cmd := &cobra.Command{
		Use:   "push DIR [oci://HOST/PATH[:TAG]]",
		Short: "Store a package and its dependencies on the hub, or in an OCI registry",
		Long: "Verify the package in DIR, in a tarball, at a URL or in an OCI registry (oci://HOST/PATH, with :TAG or @DIGEST), and store it on the\n" +
			"hub as Operator and OperatorVersion, in the namespace " + kudo.DefaultPackagesNamespace + " or the one given with -n.\n\n" +
			"With a second argument, the package is pushed to that place in an OCI registry instead. The tag defaults to its operatorVersion,\n" +
			"followed by _ and its appVersion. The same package always has the same digest. Credentials are those of docker.\n\n" +
			"--sign-key signs the package as cosign does; the signatures of a package in a registry are stored on the hub with it. --key\n" +
			"requires a signature by one of the keys in FILE that covers all of its OperatorVersions, for packages in registries.\n\n" +
			"The packages that its KudoOperator tasks refer to are stored first. A task refers to a package by the path of a folder or\n" +
			"tarball, relative to the package, by URL, or by name. Names are looked up in --repository, or without it on the hub.\n\n" +
			"Nothing is stored unless all packages are valid. An OperatorVersion is immutable: a changed package needs a new\n" +
			"operatorVersion.",
		Example: "  kubectl addon package push ./kafka\n" +
			"  kubectl addon package push https://repository.example.com/kafka-1.0.0.tgz -n cluster1\n" +
			"  kubectl addon package push ./kafka oci://registry.example.com/packages/kafka --sign-key cosign.key\n" +
			"  kubectl addon package push oci://registry.example.com/packages/kafka:1.0.0 --key cosign.pub",
		Args: terminal.Between("DIR", "OCI"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			if len(args) == 2 {
				to, err := artifact.Parse(args[1])
				if err != nil {
					return terminal.Usagef(cmd, "%v", err)
				}
				o.to = &to
			}
			switch {
			case o.to != nil && len(o.keys) > 0:
				return terminal.Usagef(cmd, "--key is for a package that is stored on the hub: to sign one in a registry, set --sign-key")
			case o.to == nil && o.overwrite:
				return terminal.Usagef(cmd, "--overwrite is for tags in registries: an OperatorVersion is immutable")
			}
			if o.to != nil && artifact.IsReference(o.name) {
				return terminal.Usagef(cmd, "both places are in registries: use 'kubectl addon package copy', which keeps the digest and the signatures")
			}
			return runF(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.overwrite, "overwrite", false, "Move the tag in the registry if it names another artifact.")
	cmd.Flags().StringVar(&o.signKey, "sign-key", "",
		"File with the private key that signs the package: cosign's, with its password in the environment variable "+registries.PasswordVariable+", or an ECDSA key on P-256.")
	cmd.Flags().StringArrayVar(&o.keys, "key", nil, "File with public keys, of which one must have signed the package. Can be repeated.")
	o.addFlag(cmd)
	return cmd
}

func runPush(ctx context.Context, o *PushOptions) error {
	if o.to != nil {
		return o.publish(ctx)
	}
	namespace := cmp.Or(*o.Flags.Namespace, kudo.DefaultPackagesNamespace)
	o.versions = hubclient.VersionsOnce(ctx, o.Factory, namespace)
	b, err := verifiedBundle(ctx, &o.loader, o.ErrOut, o.name)
	if err != nil {
		return err
	}
	signatures, err := o.signaturesFor(ctx, b)
	if err != nil {
		return err
	}
	c, err := o.Hub()
	if err != nil {
		return err
	}
	return hubclient.Advise(push(ctx, c, o.Out, b, namespace, signatures), namespace)
}

// signaturesFor returns the signatures of a package that is stored on the hub: those in registries, and one with the private key. If there are public keys,
// it requires one by them, and returns only those by them.
func (o *PushOptions) signaturesFor(ctx context.Context, b *bundle) (signatures, error) {
	found, err := o.signatures(ctx)
	if err != nil {
		return signatures{}, err
	}
	if len(o.keys) > 0 {
		if _, err := o.verifySignature(ctx, b, o.name, o.keys); err != nil {
			return signatures{}, err
		}
		keys, err := registries.ReadKeys(o.keys)
		if err != nil {
			return signatures{}, err
		}
		found = signature.By(found, keys)
	}
	if o.signKey != "" {
		root := b.root()
		_, version := root.objects("")
		signed, err := b.sign(o.signKey, signature.Statement{Digest: signature.ContentDigest(version)})
		if err != nil {
			return signatures{}, err
		}
		found = append(found, signed)
	}
	return signatures{found, len(o.keys) > 0 || o.signKey != ""}, nil
}

// signatures are those of packages that are stored on the hub.
type signatures struct {
	found []signature.Signature
	// required is set if each OperatorVersion must get one.
	required bool
}

// publish pushes a package to a registry.
func (o *PushOptions) publish(ctx context.Context) error {
	b, files, done, err := o.loadPortable(ctx, o.name)
	if err != nil {
		return err
	}
	defer done()
	if err := printers.WriteEscaped(o.ErrOut, b.problemsText()+b.fetchedText()); err != nil {
		return err
	}
	if err := b.checkValid(o.name); err != nil {
		return err
	}
	tarball, _, err := b.tarball(files)
	if err != nil {
		return err
	}
	p, to := b.root().pkg, *o.to
	made, err := artifact.New(tarball, p)
	if err != nil {
		return err
	}
	if to.Digest != "" && to.Digest != made.Digest {
		return fmt.Errorf("%s: the package has digest %s", to, made.Digest)
	}
	if to.Tag == "" {
		to.Tag = artifact.TagOf(p.Version.AppVersion, p.Version.Version)
	}
	return o.upload(ctx, b, to, made)
}

// upload pushes an artifact, and signs it.
func (o *PushOptions) upload(ctx context.Context, b *bundle, to artifact.Reference, made artifact.Artifact) error {
	statement := signature.Statement{Place: to.Host + "/" + to.Repository, Digest: made.Digest}
	var signed signature.Signature
	var err error
	if o.signKey != "" { // before anything is pushed, so that no unsigned package remains
		if signed, err = b.sign(o.signKey, statement); err != nil {
			return err
		}
	}
	registry, err := o.registries.Client()
	if err != nil {
		return err
	}
	to.Digest = ""
	pushed, err := registry.Push(ctx, to, made, o.overwrite)
	if err != nil {
		return err
	}
	to.Digest = made.Digest
	did := "unchanged"
	if pushed {
		did = "pushed"
	}
	if _, err := fmt.Fprintf(o.Out, "%s %s\n", to, did); err != nil || o.signKey == "" {
		return err
	}
	if err := registry.Sign(ctx, to, signed); err != nil {
		return err
	}
	_, err = fmt.Fprintf(o.Out, "%s signed\n", to)
	return err
}

// sign signs a statement with the content of the OperatorVersions in a bundle.
func (b *bundle) sign(keyFile string, statement signature.Statement) (signature.Signature, error) {
	key, err := registries.ReadPrivateKey(keyFile)
	if err == nil {
		statement.Versions, err = b.contentDigests()
	}
	if err != nil {
		return signature.Signature{}, err
	}
	return key.Sign(statement)
}

// signatures returns the signatures of all packages that were pulled. They are not verified: the hub verifies them, if it requires signatures.
func (l *loader) signatures(ctx context.Context) ([]signature.Signature, error) {
	var all []signature.Signature
	for _, name := range slices.Sorted(maps.Keys(l.pulled)) {
		registry, err := l.registries.Client()
		if err != nil {
			return nil, err
		}
		found, err := registry.Signatures(ctx, l.pulled[name].Reference)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// loadPortable loads a package as it is packed, with the files that contain it. The caller calls done in the end.
func (l *loader) loadPortable(ctx context.Context, name string) (b *bundle, files fs.FS, done func(), err error) {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		root, err := os.OpenRoot(name) // symbolic links cannot point outside of it
		if err != nil {
			return nil, nil, nil, fmt.Errorf("opening package: %w", err)
		}
		b, err = l.loadFolder(ctx, name, root.FS())
		if err != nil {
			_ = root.Close()
			return nil, nil, nil, err
		}
		return b, b.root().archive, func() { _ = root.Close() }, nil
	}
	l.begin()
	at, err := l.openSource(ctx, name)
	if err == nil {
		b, err = l.loadFrom(ctx, at)
	}
	return b, at.archive, func() {}, err
}

// push stores a package and its dependencies, dependencies first, and what is too large for each OperatorVersion after it. It stores nothing if one
// of the versions exists on the hub with different content.
func push(ctx context.Context, c client.Client, out io.Writer, b *bundle, namespace string, signed signatures) error {
	members := b.distinct()
	exists, err := findExisting(ctx, c, members, namespace)
	if err != nil {
		return err
	}
	describing, err := highestVersions(ctx, c, members, namespace)
	if err != nil {
		return err
	}
	if err := checkServesContent(c, members); err != nil {
		return err
	}
	for _, m := range members {
		operator, version := m.objects(namespace)
		if describing[version.Name] {
			err = store(ctx, c, out, "operator", &kudo.Operator{}, operator)
		}
		switch {
		case err != nil:
		case exists[version.Name]:
			err = report(out, "operatorversion", version.Name, "unchanged")
		default:
			stored, _ := pack.Divide(version)
			err = store(ctx, c, out, "operatorversion", &kudo.OperatorVersion{}, stored)
		}
		if err == nil {
			err = storeContent(ctx, c, out, version, m.charts, exists[version.Name])
		}
		if err == nil {
			err = signed.store(ctx, c, out, version)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// findExisting reports for each member whether its OperatorVersion exists on the hub. It returns an error if one exists with different
// content.
func findExisting(ctx context.Context, c client.Client, members []*member, namespace string) (map[string]bool, error) {
	exists := map[string]bool{}
	var conflicts []error
	for _, m := range members {
		_, version := m.objects(namespace)
		stored := &kudo.OperatorVersion{}
		err := c.Get(ctx, client.ObjectKeyFromObject(version), stored)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading OperatorVersion %q: %w", version.Name, err)
		}
		if exists[version.Name] = err == nil; !exists[version.Name] {
			continue
		}
		if changed := pack.ChangedFields(stored.NamedSpec(), &version.Spec); len(changed) > 0 {
			conflicts = append(conflicts, fmt.Errorf("OperatorVersion %q already exists in namespace %q with different content (%s) "+
				"and is immutable: raise operatorVersion in %s", version.Name, version.Namespace, strings.Join(changed, ", "), m.file("operator.yaml")))
		}
	}
	return exists, errors.Join(conflicts...)
}

// highestVersions returns the OperatorVersions with the packages that provide the Operator: the highest existing version of each operator,
// because all its versions share one Operator. If the user may not list the versions on the hub, it is the highest of the members.
func highestVersions(ctx context.Context, c client.Client, members []*member, namespace string) (map[string]bool, error) {
	versions, err := read.StoredVersions(ctx, c, namespace)
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	for _, m := range members {
		_, version := m.objects(namespace)
		if !slices.ContainsFunc(versions, func(v kudo.OperatorVersion) bool { return v.Name == version.Name }) {
			versions = append(versions, *version)
		}
	}
	highest := map[string]bool{}
	for _, version := range versions {
		var task kudo.Task
		task.Spec.Package = version.OperatorName()
		if chosen, err := tree.Choose(task, versions); err == nil {
			highest[chosen.Name] = true
		}
	}
	return highest, nil
}

// store applies one object and reports the result; current is an empty object of the same type.
func store(ctx context.Context, c client.Client, out io.Writer, kind string, current, want client.Object) error {
	err := c.Get(ctx, client.ObjectKeyFromObject(want), current)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading %s %q: %w", kind, want.GetName(), err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(want)
	if err != nil {
		return fmt.Errorf("converting %s %q: %w", kind, want.GetName(), err)
	}
	delete(content, "status")
	applied, err := apply.Object(ctx, c, &unstructured.Unstructured{Object: content}, hubclient.FieldManager)
	if err != nil {
		return fmt.Errorf("applying %s %q: %w", kind, want.GetName(), err)
	}
	did := "configured"
	switch current.GetResourceVersion() {
	case "":
		did = "created"
	case applied.GetResourceVersion():
		did = "unchanged"
	}
	return report(out, kind, want.GetName(), did)
}
