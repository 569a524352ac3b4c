package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/test/bench/process"
	"github.com/tandem-addons/tandem/test/bench/program"
)

// packageKind is what the packages of a measurement consist of.
type packageKind string

const (
	templates packageKind = "templates"
	charts    packageKind = "charts"
)

// The sizes of the charts' archives in bytes, from the smallest to the largest, which are those of public charts.
const (
	minArchive = 10 << 10
	maxArchive = 500 << 10
)

// settleTime is how long the programs are at rest before their memory is read: Go collects garbage after two minutes at the latest.
const settleTime = 130 * time.Second

// memoryOf measures the memory of addon-agent and addon-manager before there are packages, while all Instances start, at rest, and at rest after both
// were restarted.
func (b *bench) memoryOf(ctx context.Context, kind packageKind) (memory, error) {
	m := memory{Kind: kind, Packages: b.packages, MB: map[string]levels{}}
	idle, err := b.resident()
	if err != nil {
		return m, err
	}
	folder, err := os.MkdirTemp("", "tandem-bench-packages-")
	if err != nil {
		return m, fmt.Errorf("making a folder: %w", err)
	}
	defer os.RemoveAll(folder)
	names := make([]string, b.packages)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%02d", chartName, i)
	}
	peaks := make(chan map[string]float64)
	observed, stop := context.WithCancel(ctx)
	defer stop()
	go func() { peaks <- b.peaks(observed) }()
	err = b.deployPackages(ctx, kind, folder, names)
	stop()
	peak := <-peaks
	if err != nil {
		return m, err
	}
	rest, err := b.atRest(ctx)
	if err != nil {
		return m, err
	}
	for _, name := range programs {
		if err := errors.Join(b.StopProgram(ctx, name.cluster, name.program), b.StartProgram(ctx, name.cluster, name.program)); err != nil {
			return m, err
		}
	}
	restarted, err := b.atRest(ctx)
	for _, p := range programs {
		m.MB[p.program] = levels{Idle: idle[p.program], Peak: peak[p.program], Rest: rest[p.program], Restarted: restarted[p.program]}
	}
	return m, err
}

// programs are those whose memory is measured.
var programs = []struct{ cluster, program string }{{"hub", "addon-manager"}, {"cluster1", "addon-agent"}}

// atRest returns the memory of the programs once they have been at rest.
func (b *bench) atRest(ctx context.Context) (map[string]float64, error) {
	select {
	case <-time.After(settleTime):
		return b.resident()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// resident returns the current memory of the programs in MB, with their children.
func (b *bench) resident() (map[string]float64, error) {
	used := map[string]float64{}
	for _, side := range []interface {
		PID(string) (int, error)
		Name() string
	}{b.Hub, b.Managed} {
		for _, p := range programs {
			if p.cluster != side.Name() {
				continue
			}
			pid, err := side.PID(p.program)
			if err != nil {
				return nil, err
			}
			bytes, err := process.Resident(pid)
			if err != nil {
				return nil, err
			}
			used[p.program] = float64(bytes) / (1 << 20)
		}
	}
	return used, nil
}

// peaks samples the memory of the programs until ctx ends, and returns the most of each.
func (b *bench) peaks(ctx context.Context) map[string]float64 {
	peak := map[string]float64{}
	for {
		if used, err := b.resident(); err == nil {
			for name, mb := range used {
				peak[name] = max(peak[name], mb)
			}
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return peak
		}
	}
}

// deployPackages stores packages on the hub, and deploys an Instance of each, all at the same time.
func (b *bench) deployPackages(ctx context.Context, kind packageKind, folder string, names []string) error {
	instances := make([]*kudo.Instance, len(names))
	for i, name := range names {
		size := 0
		if kind == charts {
			size = archiveSize(i, len(names))
		}
		if err := b.writePackage(ctx, kind, filepath.Join(folder, name), name, size); err != nil {
			return err
		}
		if err := b.push(ctx, filepath.Join(folder, name)); err != nil {
			return err
		}
		instances[i] = instance(name, name+"-1.0.0")
	}
	if err := b.create(ctx, instances); err != nil {
		return err
	}
	return program.Until(ctx, "all plans are complete", func(ctx context.Context) (bool, error) {
		var list kudo.InstanceList
		err := b.Hub.List(ctx, &list)
		complete := 0
		for _, i := range list.Items {
			if i.Status.PlanStatus[kudo.DeployPlan].Status == kudo.Complete {
				complete++
			}
		}
		return complete == len(names), err
	})
}

// archiveSize returns the size of the archive of a chart: most are small.
func archiveSize(i, count int) int {
	part := float64(i) / float64(max(1, count-1))
	return minArchive + int(part*part*part*(maxArchive-minArchive))
}

// writePackage writes a package: a copy of the benchmark's own, with a file that makes its chart larger, or templates that render the same objects.
func (b *bench) writePackage(ctx context.Context, kind packageKind, folder, name string, size int) error {
	if err := os.CopyFS(folder, os.DirFS(b.folder)); err != nil {
		return fmt.Errorf("copying the package: %w", err)
	}
	operator := filepath.Join(folder, "operator.yaml")
	content, err := os.ReadFile(operator)
	if err != nil {
		return err
	}
	content = []byte(strings.Replace(string(content), "name: "+chartName, "name: "+name, 1))
	if kind == templates {
		if content, err = b.writeTemplates(ctx, content, folder); err != nil {
			return err
		}
	} else if err := os.WriteFile(filepath.Join(folder, chartName, "data.txt"), noise(size), 0o644); err != nil {
		return err
	}
	return os.WriteFile(operator, content, 0o644)
}

// noise returns text that compression reduces to a number of bytes: random bytes in base64.
func noise(size int) []byte {
	source, random := rand.NewChaCha8([32]byte{1}), make([]byte, size)
	_, _ = source.Read(random) // never fails
	return []byte(base64.StdEncoding.EncodeToString(random))
}

// writeTemplates replaces the chart of a package by templates that render the same objects, and returns the changed operator.yaml.
func (b *bench) writeTemplates(ctx context.Context, operator []byte, folder string) ([]byte, error) {
	renderer, err := chart.NewRenderer()
	if err != nil {
		return nil, err
	}
	archive, err := chart.Pack(os.DirFS(filepath.Join(folder, chartName)))
	if err != nil {
		return nil, err
	}
	const placeholder = "name-of-the-instance"
	rendered, err := renderer.Render(ctx, chart.Input{
		Archive: archive, Release: chart.Release{Name: placeholder, Namespace: namespace, Revision: 1}, Capabilities: chart.DefaultCapabilities(),
	}, nil)
	if err != nil {
		return nil, err
	}
	var resources []string
	for i, o := range rendered.Objects {
		text, err := yaml.Marshal(o.Object.Object)
		if err != nil {
			return nil, err
		}
		file := fmt.Sprintf("object-%02d.yaml", i)
		resources = append(resources, file)
		text = []byte(strings.ReplaceAll(string(text), placeholder, "{{ .Name }}"))
		if err := os.WriteFile(filepath.Join(folder, "templates", file), text, 0o644); err != nil {
			return nil, err
		}
	}
	task := "kind: Apply\n  spec:\n    resources: [" + strings.Join(resources, ", ") + "]\n"
	before, after, _ := strings.Cut(string(operator), "kind: Helm\n")
	_, after, _ = strings.Cut(after, "plans:\n")
	return []byte(before + task + "plans:\n" + after), os.RemoveAll(filepath.Join(folder, chartName))
}
