import Foundation

/// The folder with Package.swift.
let repository = URL(filePath: #filePath).appending(path: "../../..").standardized.path

/// The folder of the headers that a module in C includes.
let headers = "\(repository)/Sources/CPluginABI/include"

/// The folder in which SwiftPM has built the tests.
let buildFolder = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent().path

/// The path of a library or program that SwiftPM has built beside the tests.
func built(_ name: String) -> String { "\(buildFolder)/\(name)" }
