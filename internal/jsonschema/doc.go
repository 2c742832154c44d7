// Package jsonschema compiles the JSON Schemas of tenants and of commands, and checks documents against them.
//
//	schema ─► Compile: size, regular expressions, references ─► Schema ─► Faults, Fits: a document against it
//
// Schemas are written in JSON Schema draft 2020-12; format is checked. A schema is a program that its author chooses and that
// every document runs through, so the package bounds it before it runs: its length, its depth, the number of its rules with
// all references written out, and the size of its regular expressions. It refuses schemas that refer to themselves, and it
// fetches nothing.
//
// A regular expression is measured on its syntax tree. None is compiled before all of a schema's are known to be small
// enough, and one schema is compiled at a time.
//
// Listed values (enum, const, uniqueItems) are looked up by hash: comparing them one by one would take a time that no bound on
// the rules covers.
//
// The package does not limit the work for one document (Work and Matching return it), and it does not format places for an
// API: a Fault holds the location step by step.
package jsonschema
