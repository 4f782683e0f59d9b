internal import PluginABI

/// `pluginhost release OBJECT`
struct Release: Question {
    static let specification = CommandSpecification(
        name: "release",
        overview: "Let go of an object that a call has returned; who else holds it keeps it.",
        discussion: "A running host holds the objects that it has shown, so that 'call --object' finds them.",
        arguments: [ArgumentSpecification(name: "object", help: "The number that stands behind \"object\".")],
        options: OptionSpecification.hosting + [.attach, .json])

    let arguments: ParsedArguments
    private let object: Int

    init(_ arguments: ParsedArguments) throws(PluginError) {
        self.arguments = arguments
        object = try Call.object(arguments.positionals[0])
    }

    func ask(_ service: any HostService, _ console: Console) async throws(PluginError) {
        try await service.release(object)
        if arguments.has(.json) { console.print(Value.map(["released": .int(object)]).json) }
    }
}
