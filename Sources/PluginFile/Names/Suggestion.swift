import PluginABI

/// Returns the candidate that is nearest to a misspelt word; `nil` if none is near.
///
/// A candidate is near if at most three letters, and at most a third of all (but at least one), are wrong, missing,
/// superfluous or swapped. Case is ignored. If no candidate is near, one that begins with the word is returned,
/// provided that the word has more than three letters. To bound the work, the result for a word of more than 64 bytes
/// is `nil`, and longer candidates are ignored, unless they begin with the word.
package func nearest(to word: String, in candidates: some Sequence<String>) -> String? {
    guard word.utf8.count <= 64 else { return nil }
    let letters = Array(word.lowercased().utf8)
    var best: (candidate: String, distance: Int)?
    for candidate in candidates where candidate.utf8.count <= 64 {
        let limit = min(3, max(1, max(letters.count, candidate.utf8.count) / 3), (best?.distance ?? 4) - 1)
        guard abs(candidate.utf8.count - letters.count) <= limit else { continue }
        let distance = letters.withUnsafeBufferPointer { letters in
            candidate.withLowercaseLetters { editDistance(letters, $0, atMost: limit) }
        }
        if let distance { best = (candidate, distance) }
    }
    if let best { return best.candidate }
    return letters.count > 3 ? candidates.first { $0.lowercased().utf8.starts(with: letters) } : nil
}

/// Returns “ Did you mean …?”, to append to a sentence, or an empty text if no candidate is near.
package func didYouMean(_ word: String, _ candidates: some Sequence<String>) -> String {
    nearest(to: word, in: candidates).map { " Did you mean “\($0.shortened)”?" } ?? ""
}

extension String {
    /// Calls a function with the bytes of the word in lower case. A word may be compared with a thousand names, so
    /// those in ASCII, of which there are at most 64 bytes, are not copied to the heap.
    fileprivate func withLowercaseLetters<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 64) { letters in
            var count = 0
            for byte in utf8 {
                guard byte < 0x80, count < letters.count else {
                    return Array(lowercased().utf8).withUnsafeBufferPointer(body)
                }
                letters[count] = (0x41...0x5A).contains(byte) ? byte | 0x20 : byte
                count += 1
            }
            return body(UnsafeBufferPointer(rebasing: letters[..<count]))
        }
    }
}

/// Returns how many letters must be replaced, added, removed or swapped with their neighbour (optimal string
/// alignment); `nil` if there are more than `limit`. Common beginnings and ends are skipped, and the comparison stops as
/// soon as the limit is certain to be exceeded.
private func editDistance(
    _ left: UnsafeBufferPointer<UInt8>, _ right: UnsafeBufferPointer<UInt8>, atMost limit: Int
) -> Int? {
    var (begin, end) = (0, 0)
    let shorter = min(left.count, right.count)
    while begin < shorter, left[begin] == right[begin] { begin += 1 }
    while end < shorter - begin, left[left.count - 1 - end] == right[right.count - 1 - end] { end += 1 }
    let (left, right) = (left[begin..<left.count - end], right[begin..<right.count - end])
    guard limit > 0 || left.isEmpty && right.isEmpty else { return nil }
    var beforeLast: [Int] = []
    var last = Array(0...right.count)
    for (row, a) in left.enumerated() {
        var current = [row + 1]
        for (column, b) in right.enumerated() {
            var cost = min(last[column] + (a == b ? 0 : 1), last[column + 1] + 1, current[column] + 1)
            if row > 0, column > 0, a == right[begin + column - 1], left[begin + row - 1] == b {
                cost = min(cost, beforeLast[column - 1] + 1)
            }
            current.append(cost)
        }
        // The minimum of a row is at most one more than that of the previous row, so a swap, which spans two rows,
        // cannot get below the limit again.
        if current.allSatisfy({ $0 > limit }) { return nil }
        (beforeLast, last) = (last, current)
    }
    return last[right.count] <= limit ? last[right.count] : nil
}
