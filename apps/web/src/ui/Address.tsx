/** 42 characters are six groups of seven, so an address breaks into two or three equal lines. */
const GROUP = /.{1,7}/g

/** A full address that breaks into equal lines. */
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
