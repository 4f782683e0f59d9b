internal import PluginABI

/// The scripts with which shells complete the commands of the program. They ask the program itself, by the hidden
/// command ``word``, so that they also name the modules, targets and actions of the running host.
enum ShellCompletion {
    /// The hidden command: the name of a shell, then the words in front of the cursor. For bash, these are one text,
    /// which the characters at which bash breaks words follow.
    static let word = "complete-words"

    enum Shell: String, CaseIterable {
        case bash, zsh, fish

        /// Returns the script of a program with a name.
        func script(_ program: String) -> String {
            switch self {
            case .bash:
                """
                # bash completion of \(program)
                _\(program)() {
                    mapfile -t COMPREPLY < <(
                        "$1" \(word) bash "${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" 2>/dev/null)
                    # The first line states whether a space may follow.
                    if [[ ${COMPREPLY[0]} == open ]]; then compopt -o nospace; fi
                    COMPREPLY=("${COMPREPLY[@]:1}")
                }
                complete -F _\(program) \(program)
                """
            case .zsh:
                """
                #compdef \(program)
                # zsh completion of \(program)
                _\(program)() {
                    local line home texts=() labels=() open=() openLabels=()
                    # Not a part of what is quoted.
                    if [[ $PREFIX == '~/'* ]]; then home='~/'; fi
                    for line in "${(@f)$("${words[1]}" \(word) zsh "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}"; do
                        local fields=("${(@ps:\\t:)line}")
                        fields[2]=${fields[2]#$home}
                        [[ -n ${fields[2]} ]] || continue
                        if [[ ${fields[1]} == open ]]; then
                            open+=("${fields[2]}"); openLabels+=("${fields[2]}${fields[3]:+  -- ${fields[3]}}")
                        else
                            texts+=("${fields[2]}"); labels+=("${fields[2]}${fields[3]:+  -- ${fields[3]}}")
                        fi
                    done
                    [[ -z $home ]] || compset -P '\\~/'
                    compadd -l -d labels -a texts
                    compadd -l -S '' -d openLabels -a open
                }
                if [[ $funcstack[1] == _\(program) ]]; then _\(program) "$@"; else compdef _\(program) \(program); fi
                """
            case .fish:
                """
                # fish completion of \(program)
                function __\(program)_complete
                    set -l words (commandline -opc)
                    set -l program $words[1]
                    set -e words[1]
                    # Without quotes and backslashes; a quote may be open.
                    set -l token (commandline -ct)
                    set -l word (for end in '' "'" '"'; string unescape -- "$token$end"; and break; end)
                    $program \(word) fish $words "$word" 2>/dev/null
                end
                complete -c \(program) -f -a '(__\(program)_complete)'
                """
            }
        }
    }

    /// Answers the hidden command. Returns an empty text if there are no candidates.
    static func answer(
        _ arguments: [String], _ commands: [CommandSpecification], _ variables: [String: String]
    ) async -> String {
        guard let shell = arguments.first.flatMap(Shell.init), arguments.count > 1 else { return "" }
        var words = Array(arguments.dropFirst())
        let breaks = shell == .bash && words.count > 1 ? words[1] : ""
        if shell == .bash { words = Array(WordsOfLine(words[0]).words.dropFirst()) }
        guard let word = words.popLast() else { return "" }
        let completer = Completer(
            commands: commands,
            words: [
                Candidate(text: "help", help: "Show the help page of a command."),
                Candidate(text: OptionSpecification.help.name, help: OptionSpecification.help.help),
                Candidate(text: OptionSpecification.version.name, help: OptionSpecification.version.help),
            ], host: host(words, variables))
        let candidates = await completer.complete(word, after: words)
        return lines(candidates, word, for: shell, breaks)
    }

    /// Returns the running host that the words address. Does not wait long for a host that does not answer.
    private static func host(_ words: [String], _ variables: [String: String]) -> AttachedHost? {
        let attach = OptionSpecification.attach.name
        let path =
            words.firstIndex(of: attach).flatMap { $0 + 1 < words.count ? words[$0 + 1] : nil }
            ?? words.first { $0.hasPrefix(attach + "=") }.map { String($0.dropFirst(attach.count + 1)) }
            ?? DefaultSocket.path(variables)
        return path.flatMap { try? AttachedHost(path: $0, patience: .seconds(1), probe: .seconds(1)) }
    }

    private static func lines(_ candidates: [Candidate], _ word: String, for shell: Shell, _ breaks: String) -> String {
        if candidates.isEmpty { return "" }
        switch shell {
        case .bash:
            // Bash replaces only what follows the last of its word breaks.
            let kept = word.lastIndex(where: breaks.contains).map { word[...$0].count } ?? 0
            let texts = candidates.map { String($0.text.dropFirst(kept)).escapedForShell }
            return ([candidates.contains(where: \.isWhole) ? "whole" : "open"] + texts).joined(separator: "\n")
        case .zsh:
            return candidates.map { "\($0.isWhole ? "whole" : "open")\t\($0.text)\t\($0.shortHelp)" }
                .joined(separator: "\n")
        case .fish:
            return candidates.map { "\($0.text)\t\($0.shortHelp)" }.joined(separator: "\n")
        }
    }
}

extension Candidate {
    /// The first sentence of the help.
    fileprivate var shortHelp: String {
        let end = help.firstRange(of: ". ")?.lowerBound ?? help.endIndex
        return String(help[..<end]).printable
    }
}

extension String {
    /// The text as one word of a line in a shell, with backslashes.
    var escapedForShell: String {
        reduce(into: "") { text, character in
            if " \t\"'\\$`&|;<>()[]{}*?!#".contains(character) { text.append("\\") }
            text.append(character)
        }
    }
}
