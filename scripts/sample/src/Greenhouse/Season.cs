namespace Greenhouse;

/// <summary>The four of them, as the gardener counts.</summary>
public enum Season
{
    Spring,
    Summer,
    Autumn,
    Winter,
}
