// Command imagetool builds the last stage of a Containerfile without a container builder, a registry or privileges.
//
//	imagetool -containerfile FILE -stage build=DIRECTORY -name godwit:1.2.3 -output image.tar
//
// A directory takes the place of each earlier stage: COPY --from=build /out/godwit reads DIRECTORY/out/godwit. The last stage must
// begin FROM scratch and may use only the instructions that stage.go knows; anything else is an error, never left out.
//
// The output is an OCI image layout in a tar file which also has the manifest.json of `docker save`, so that both `docker load` and
// `podman load` take it. The same input gives the same bytes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
)

func main() {
	var (
		containerfile = flag.String("containerfile", "deploy/container/Containerfile", "the file whose last stage is built")
		name          = flag.String("name", "godwit:latest", "name and tag of the image")
		output        = flag.String("output", "", "tar file that is written")
		architecture  = flag.String("architecture", runtime.GOARCH, "architecture of the binaries in the image")
		stages        = map[string]string{}
	)
	flag.Func("stage", "NAME=DIRECTORY that takes the place of an earlier stage", func(s string) error {
		stage, directory, ok := strings.Cut(s, "=")
		if !ok {
			return errors.New("write NAME=DIRECTORY")
		}
		stages[stage] = directory
		return nil
	})
	flag.Parse()
	if err := build(*containerfile, *name, *output, *architecture, stages); err != nil {
		fmt.Fprintln(os.Stderr, "imagetool:", err)
		os.Exit(1)
	}
}

func build(containerfile, name, output, architecture string, stages map[string]string) error {
	text, err := os.ReadFile(containerfile)
	if err != nil {
		return err
	}
	stage, err := parseStage(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", containerfile, err)
	}
	layer, err := makeLayer(stage.copies, stages)
	if err != nil {
		return err
	}
	out, err := os.Create(output)
	if err != nil {
		return err
	}
	return errors.Join(writeImage(out, name, architecture, stage.config, layer), out.Close())
}
