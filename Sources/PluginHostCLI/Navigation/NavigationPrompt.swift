internal import PluginABI
internal import PluginFile
internal import PluginHost

/// The prompt for commands that open and close pages of the host of this process. It reads them from standard input.
struct NavigationPrompt: Sendable {
    private static let text = "navigate> "

    private static let help = """
        open <page> [<name=value> ...]     Push a page, or open it in a new stack if nothing is open
        push <page> [<name=value> ...]     Open a page on top of the visible page
        present <page> [<name=value> ...]  Open a page in front of everything, alone
        stack <page> [<name=value> ...]    Open a page in front of everything, as the first page of a new stack
        pop [<count>]                      Close the topmost pages of the stack
        dismiss [<count>]                  Close the page or stack that was presented last
        root                               Close all pages of the stack except the first
        do <action> [<name=value> ...]     Perform an action of the visible page
        emit <event> [<name=value> ...]    Send an event up the chain, from the visible page
        show                               Show the visible page again
        quit
        <page> is a URL, which is opened as by a remote caller, or target/action.
        """

    private let host: PluginHost
    private let navigator: Navigator
    private let presenter: TerminalPresenter
    private let console: Console
    private let variables: [String: String]

    /// The names of the commands.
    private static let names = [
        "open", "push", "present", "stack", "pop", "dismiss", "root", "do", "emit", "show", "help", "quit",
    ]

    /// Registers a navigator, so that modules can open pages as well.
    init(
        _ host: PluginHost, console: Console, variables: [String: String], asJSON: Bool
    ) throws(PluginError) {
        (self.host, self.console, self.variables) = (host, console, variables)
        presenter = TerminalPresenter(console: console, asJSON: asJSON)
        navigator = Navigator(host, presenter: presenter)
        try navigator.register()
    }

    /// Runs the prompt. Returns at `quit`, and at the end of the input.
    func run() async {
        let editor = LineEditor(history: "history-navigate", variables) { _, before in
            before.isEmpty ? Self.names.map { Candidate(text: $0) } : []
        }
        var lines = InputLines(editor: editor)
        await lines.takeCommands(
            Self.text, console, asJSON: presenter.asJSON
        ) { name, words async throws(PluginError) in
            try await perform(name, words)
        }
    }

    private func perform(_ name: String, _ words: [String]) async throws(PluginError) {
        switch name {
        case "open": try await open(words, by: navigator.layers.isEmpty ? .presentInNewStack : .push)
        case "push": try await open(words, by: .push)
        case "present": try await open(words, by: .present)
        case "stack": try await open(words, by: .presentInNewStack)
        case "pop": try await navigator.pop(Self.count(words))
        case "dismiss": try await navigator.dismiss(Self.count(words))
        case "root": if try await navigator.popToRoot().isEmpty { await presenter.show(navigator.layers) }
        case "show": await presenter.show(navigator.layers)
        case "do":
            let (action, words) = try Self.named(words, "an action")
            let object = try top().object
            let parameters = try typed(words, at: .object(object, action: action))
            let result = try await object.call(action, Parameters(parameters))
            console.printResult(result, asJSON: presenter.asJSON)
        case "emit":
            let (event, words) = try Self.named(words, "an event")
            tell(try await host.emit(event, Parameters(words.untyped), from: top().object))
        case "help": console.print(presenter.asJSON ? Value.map(["help": .string(Self.help)]).json : Self.help)
        default:
            throw .usage("There is no command '\(name.shortened)'.\(didYouMean(name, Self.names))")
        }
    }

    private func open(_ words: [String], by transition: Transition) async throws(PluginError) {
        let (page, words) = try Self.named(words, "a page")
        let onClose: Navigator.Completion = { tell(page, $0) }
        if page.contains(":") {
            let parameters = try typed(words, at: .url(page))
            try await navigator.open(page, parameters, by: transition, origin: .remote, onClose: onClose)
        } else {
            guard let names = page.targetAndAction else {
                throw .usage("'\(page.shortened)' is not a page; write a URL, or target/action.")
            }
            let parameters = try typed(words, at: .action(target: names.target, names.action))
            try await navigator.open(names.target, names.action, parameters, by: transition, onClose: onClose)
        }
    }

    private func top() throws(PluginError) -> OpenPage {
        guard let top = navigator.top else { throw PluginError(.pageNotOpen, "No page is open.") }
        return top
    }

    // MARK: Words

    private static func count(_ words: [String]) throws(PluginError) -> Int {
        guard let word = words.first else { return 1 }
        guard words.count == 1, let count = Int(word), count > 0 else {
            throw .usage("'\(words.joined(separator: " "))' is not a number of pages.")
        }
        return count
    }

    private static func named(
        _ words: [String], _ what: String
    ) throws(PluginError) -> (name: String, words: NamedValues) {
        guard let name = words.first else { throw .usage("The command needs \(what). See 'help'.") }
        return (name, try NamedValues(words.dropFirst()))
    }

    private func typed(_ words: NamedValues, at address: CallAddress) throws(PluginError) -> [String: Value] {
        try words.typed(host.declaredTypes(at: address) ?? [:])
    }

    // MARK: Output

    private func tell(_ page: String, _ backData: Result<Value, PluginError>) {
        switch backData {
        case .failure(let error):
            guard presenter.asJSON else { return console.report(error, asJSON: false) }
            console.print(Value.map(["closed": .string(page), "error": error.record]).json)
        case .success(let value):
            let record: Value = ["closed": .string(page), "backData": value]
            console.print(presenter.asJSON ? record.json : "closed \(page.printable): \(value.readable.printable)")
        }
    }

    private func tell(_ outcome: ChainOutcome) {
        guard !presenter.asJSON else { return console.print(outcome.value.json) }
        for failure in outcome.failures { console.report(failure, asJSON: false) }
        console.print(outcome.handler.map { "handled by \($0.printable)" } ?? "not handled")
        if !outcome.result.isNull { console.print(outcome.result.readable.printable) }
    }
}
