internal import FoundationEssentials
internal import PluginABI

/// `pluginhost new NAME`
enum New: Command {
    static let language = OptionSpecification(
        name: "--language", value: "language", choices: ModulePackage.Language.allCases.map(\.rawValue),
        help: "The language of the module: swift, c, c++ or rust. (default: swift)")
    static let dependency = OptionSpecification(
        name: "--dependency", value: "path-or-url",
        help:
            "The location of PluginHost: a clone or, for Swift, a URL. (default: the clone in which this program was built, "
            + "or the package that was installed with it)")
    static let folder = OptionSpecification(
        name: "--at", value: "dir", help: "The folder of the module. (default: ./NAME)")

    static let specification = CommandSpecification(
        name: "new",
        overview: "Create a module, with an action, a route, a test and a README.",
        discussion:
            "The module builds, and its test passes: 'swift test' in Swift, 'make test' in C and C++, 'cargo test' in Rust. "
            + "In C, C++ and Rust, the manifest is a JSON file that the build embeds. Existing files are not overwritten.",
        arguments: [
            ArgumentSpecification(
                name: "name", help: "The name of the module: a letter, then letters, digits and '_'.")
        ],
        options: [language, dependency, folder])

    static func run(_ invocation: Invocation) async throws(PluginError) {
        let arguments = invocation.arguments
        let name = try ModuleName(arguments.positionals[0])
        let language = arguments.value(of: language).flatMap(ModulePackage.Language.init(rawValue:)) ?? .swift
        let folder = URL(filePath: arguments.value(of: folder) ?? name.text).standardizedFileURL.path
        let package = try ModulePackage(
            name, language, try PackageDependency(arguments.value(of: dependency)), folder: folder)
        try package.write()
        for file in package.files { invocation.console.print("\(package.folder)/\(file.path)".printable) }
    }
}
