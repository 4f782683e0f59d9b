internal import PluginABI
internal import PluginHost

/// `pluginhost resolve URL`, `pluginhost resolve --pattern PATTERN URL`
enum Resolve: Question {
    static let pattern = OptionSpecification(
        name: "--pattern", value: "pattern",
        help: "Match the URL with this pattern only, without a host: show the values of the pattern's groups.")
    static let local = OptionSpecification(
        name: "--local", help: "Explain the URL for a local caller, not for a remote caller.")

    static let specification = CommandSpecification(
        name: "resolve",
        overview: "Explain what a URL leads to, and why, without calling anything.",
        discussion: "Shows the action, the route and the parameters, or why the URL leads nowhere; then the "
            + "other routes that match it, each with the reason why it does not win. As for 'open', the caller is "
            + "remote unless '--local' is given. With '--pattern', a pattern and a URL without a scheme have the "
            + "first one of '--scheme'. The exit code is 0 whatever the answer is.",
        arguments: [
            ArgumentSpecification(name: "url", kind: .url, help: "The URL, for instance 'app://shop/detail/42'.")
        ],
        options: [pattern, .method, local] + OptionSpecification.hosting + [.attach, .json])

    static func parameters(_ arguments: ParsedArguments) -> [String: Value] {
        ["url": .string(arguments.positionals[0]), "local": .bool(arguments.has(local))].withMethod(of: arguments)
    }

    static func answerWithoutHost(_ arguments: ParsedArguments) async throws(PluginError) -> Value? {
        guard let text = arguments.value(of: pattern) else { return nil }
        for option in [.method, local, .attach] where arguments.has(option) {
            throw .usage("'\(option.name)' has no effect with '--pattern': no host is asked.")
        }
        let pattern = try URLPattern(text, scheme: arguments.schemes?.first ?? "app")
        let length = try arguments.urlLength ?? URLPattern.defaultLength
        let taken = try pattern.match(arguments.positionals[0], maximumLength: length)
        return taken.map { ["matched": true, "parameters": .map($0)] } ?? ["matched": false]
    }

    static func ask(_ host: any HostService, _ invocation: Invocation) async throws(PluginError) {
        if let answer = try await answerWithoutHost(invocation.arguments) { return try tell(answer, invocation) }
        try tell(await host.request("resolve", invocation.parameters), invocation)
    }

    static func show(_ answer: Value, _ invocation: Invocation) {
        let console = invocation.console
        guard let isMatch = answer["matched"] else { return console.printExplanation(answer) }
        let parameters = answer["parameters"] ?? [:]
        if isMatch != true {
            console.print("It does not match.")
        } else {
            console.print(parameters.map?.isEmpty == true ? "It matches." : parameters.outline)
        }
    }
}

extension Console {
    /// Prints the explanation of a URL for people.
    fileprivate func printExplanation(_ answer: Value) {
        print(lines(of: answer).joined(separator: "\n"))
    }

    private func lines(of answer: Value) -> [String] {
        var lines: [String] = []
        if let action = answer["action"]?.string {
            let module = answer["module"]?.string.map { " of \($0)" } ?? ""
            let way = answer["route"]?.string.map { ", by the route \($0)" } ?? ", which the URL itself names"
            let fallback = answer["fallback"]?.string.map { "; \($0) answers in its place" } ?? ""
            lines.append("Leads to \(action)\(module)\(way)\(fallback).".printable)
        } else {
            lines.append("Leads nowhere.")
        }
        if let error = answer["error"] {
            lines.append("Cannot be opened: \(error.text("message")) (\(error.text("code")))".printable)
        }
        let demands = answer.texts("demands")
        if !demands.isEmpty {
            lines.append("Demands of other programs: \(demands.joined(separator: ", ")).".printable)
        }
        if let parameters = answer["parameters"], parameters.map?.isEmpty == false {
            lines.append("Parameters:")
            lines += parameters.outline.split(separator: "\n").map { "  \($0)" }
        }
        let others = answer.list("others")
        if !others.isEmpty { lines.append("Also matches:") }
        for other in others {
            let owner = other["owner"]?.string.map { $0.isEmpty ? "" : " (\($0))" } ?? ""
            lines.append(
                "  \(other.text("pattern")) to \(other.text("action"))\(owner): \(other.text("reason")).".printable)
        }
        if answer["othersComplete"] == false { lines.append("  and more") }
        return lines
    }
}
