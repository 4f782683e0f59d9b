internal import Foundation
internal import PluginABI

/// `pluginhost new NAME`
enum New: Command {
    static let language = OptionSpecification(
        name: "--language", value: "language", choices: ["swift", "c"],
        help: "The language of the module: swift or c. (default: swift)")
    static let dependency = OptionSpecification(
        name: "--dependency", value: "path-or-url",
        help: "The location of PluginHost for the package. (default: the clone in which this program was built)")
    static let folder = OptionSpecification(
        name: "--at", value: "dir", help: "The folder of the package. (default: ./NAME)")

    static let specification = CommandSpecification(
        name: "new",
        overview: "Create the package of a module, with an action, a route, a test and a README.",
        discussion: "The package builds, its test passes, and its product can be loaded: 'swift test', then "
            + "'pluginhost check .build/debug/libNAME.so'. Existing files are not overwritten.",
        arguments: [
            ArgumentSpecification(
                name: "name", help: "The name of the module: a letter, then letters, digits and '_'.")
        ],
        options: [language, dependency, folder])

    static func run(_ invocation: Invocation) async throws(PluginError) {
        let arguments = invocation.arguments
        let name = try ModuleName(arguments.positionals[0])
        let word = arguments.value(of: language) ?? "swift"
        guard let language = ModulePackage.Language(rawValue: word.lowercased()) else {
            throw .usage("'\(word.shortened)' is not a supported language: use swift or c.")
        }
        let package = ModulePackage(
            name: name, language: language, dependency: try PackageDependency(arguments.value(of: dependency)),
            folder: URL(filePath: arguments.value(of: folder) ?? name.text).standardizedFileURL.path)
        try package.write()
        for file in package.files { invocation.console.print("\(package.folder)/\(file.path)".printable) }
    }
}
