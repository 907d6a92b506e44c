/** So many characters stay together: 42 are six of these, so that two lines, or three, are alike and easy to compare. */
const GROUP = /.{1,7}/g

/** An address in full, broken evenly where it does not fit on a line. */
export function Address({ address }: { address: string }) {
  const groups = address.match(GROUP) ?? []
  return (
    <span className="mono address-groups">
      {groups.map((group, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a group has nothing but its place
        <span key={index}>
          {group}
          <wbr />
        </span>
      ))}
    </span>
  )
}
